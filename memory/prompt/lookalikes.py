"""Characters that look like others, or like nothing. Shared by quoting and injection detection."""

# Besides those that NFKC folds to "<".
BRACKETS = "<‹⟨〈〈❬❮❰˂≺ᐸᚲ⧼⦑⋖◁◂⊲"
SLASHES = "/∕⁄╱⧸\\⧵⟋"
# Joiners are format characters that some scripts and emoji need.
JOINERS = "\u200c\u200d"
# Hangul fillers, Khmer inherent vowels and the grapheme joiner are letters or marks for Unicode,
# but show nothing; the blank of Braille shows a space.
INVISIBLE = dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f")) | {0x2800: " "}
# Letters of other scripts, small capitals and phonetic letters.
LETTERS = str.maketrans(
    "аеорсухіјѕԁӏкмтвнһѵԛԝոսօαορικντυγɑɡıɩʏᴍᴇᴏʀᴛᴀɴᴄᴘɪ",
    "aeopcyxijsdlkmtbhhvqwnuoaopikvtuyagiiymeortancpi",
)
# Digits and signs that stand for letters.
LEET = str.maketrans("013457@$!|", "oieastasii")
