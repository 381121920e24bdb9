"""Backups: database and files of one moment in one tar file, and the way back.

files/…             what rows name: images, and files that wait to be imported
database/00000…     what pg_dump wrote, in pieces; strung together pg_restore reads it
manifest.json       what, of when, and how much
SHA256SUMS          of all of the above; the last, so that what ends without it is not whole
"""
