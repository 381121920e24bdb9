"""Backup and restore: the database and the files, as of one moment, in one tar file.

files/…             the files that rows refer to: images, files of projects and chats, and files
                    that wait to be imported
database/00000…     the output of pg_dump in pieces; concatenated, pg_restore can read it
manifest.json       time, versions and counts
SHA256SUMS          checksums of the members above; comes last, so that truncation is detected
"""
