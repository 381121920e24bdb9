"""Characters that look like others or are invisible, for quoting and injection detection."""

# Look-alikes of "<" that NFKC does not replace by "<".
BRACKETS = "<‹⟨〈〈❬❮❰˂≺ᐸᚲ⧼⦑⋖◁◂⊲"
SLASHES = "/∕⁄╱⧸\\⧵⟋"
# Joiners, format characters that are kept because some scripts and emoji need them.
JOINERS = "\u200c\u200d"
# Letters or marks in Unicode that show nothing: Hangul fillers, Khmer inherent vowels, the grapheme
# joiner. The Braille blank shows a space.
INVISIBLE = dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f")) | {0x2800: " "}
# Replaces letters of other scripts, small capitals and phonetic letters by Latin letters.
LETTERS = str.maketrans(
    "аеорсухіјѕԁӏкмтвнһѵԛԝոսօαορικντυγɑɡıɩʏᴍᴇᴏʀᴛᴀɴᴄᴘɪ",
    "aeopcyxijsdlkmtbhhvqwnuoaopikvtuyagiiymeortancpi",
)
# Digits and signs that are used instead of letters.
LEET = str.maketrans("013457@$!|", "oieastasii")
