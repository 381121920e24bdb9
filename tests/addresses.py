"""Addresses that lead inside, or nowhere that a request from here should go, as people write them.

`RESOLVER` plays a resolver for the names among them: what each resolves to, look-up by look-up;
the last answer stays. `REDIRECTED` are where a receiver in the open sends on to.
"""

PUBLIC = "93.184.215.14"

RESOLVER: dict[str, list[list[str]]] = {
    # One that is what it says.
    "good.example.org": [[PUBLIC]],
    # Names whose owner points them inside.
    "inside.example.org": [["127.0.0.1"]],
    "inside6.example.org": [["::1"]],
    "mapped.example.org": [["::ffff:10.0.0.1"]],
    "mapped-hex.example.org": [["::ffff:7f00:1"]],
    "compatible.example.org": [["::7f00:1"]],
    "nat64.example.org": [["64:ff9b::7f00:1"]],
    "nat64-local.example.org": [["64:ff9b:1::a00:1"]],
    "sixtofour.example.org": [["2002:7f00:1::"]],
    "teredo.example.org": [["2001:0:7f00:1::"]],
    "private.example.org": [["10.20.30.40"]],
    "metadata.example.org": [["169.254.169.254"]],
    "cgnat.example.org": [["100.100.100.200"]],
    "unique-local.example.org": [["fd00:ec2::254"]],
    "link-local.example.org": [["fe80::1%eth0"]],
    "multicast.example.org": [["224.0.0.251"]],
    "broadcast.example.org": [["255.255.255.255"]],
    "unspecified.example.org": [["0.0.0.0"]],
    "unspecified6.example.org": [["::"]],
    "azure.example.org": [["168.63.129.16"]],
    # Public and private at once, in either order.
    "both.example.org": [[PUBLIC, "127.0.0.1"]],
    "both-reversed.example.org": [["10.0.0.1", PUBLIC]],
    "both-families.example.org": [[PUBLIC, "::1"]],
    # Letters that look like others, and the dots that are dots to a resolver.
    "localhost": [["127.0.0.1", "::1"]],
    "localhost.": [["127.0.0.1"]],
    "localhost.localdomain": [["127.0.0.1"]],
    "ip6-localhost": [["::1"]],
    "host.docker.internal": [["172.17.0.1"]],
    "kubernetes.default.svc": [["10.96.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "db": [["172.18.0.2"]],
    "127.0.0.1.nip.example.org": [["127.0.0.1"]],
    "7f000001.nip.example.org": [["127.0.0.1"]],
    "xn--bcher-kva.example.org": [["192.168.1.1"]],
}
# Public when it is checked, inside when it is asked for again.
REBINDING = [f"rebinding-{number}.example.org" for number in range(8)]
REBOUND_TO = [
    "127.0.0.1",
    "::1",
    "10.0.0.1",
    "169.254.169.254",
    "192.168.0.1",
    "100.64.0.1",
    "::ffff:127.0.0.1",
    "fd00::1",
]
RESOLVER |= {name: [[PUBLIC], [inside]] for name, inside in zip(REBINDING, REBOUND_TO, strict=True)}

IPV4 = (
    # loopback, this network, private
    "127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.254 0.0.0.0 0.0.0.1 0.255.255.255 "
    "10.0.0.0 10.0.0.1 10.255.255.255 172.16.0.1 172.17.0.1 172.31.255.254 192.168.0.1 "
    "192.168.255.255 "
    # link-local and clouds' own, CGNAT
    "169.254.0.1 169.254.169.254 169.254.170.2 169.254.255.255 168.63.129.16 100.64.0.1 "
    "100.100.100.200 100.127.255.254 "
    # protocol assignments, documentation, benchmarking, 6to4 relays, multicast, reserved
    "192.0.0.1 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1 198.51.100.7 203.0.113.9 198.18.0.1 "
    "198.19.255.254 192.88.99.1 192.31.196.1 192.52.193.1 192.175.48.1 224.0.0.1 239.255.255.250 "
    "240.0.0.1 254.1.2.3 255.255.255.255"
).split()
# As resolvers read them: fewer parts, one number, octal, hexadecimal, mixed, padded.
ODD_IPV4 = (
    "127.1 127.0.1 0 0x0 1 10.1 192.168.1 172.16.1 169.254.43518 2130706433 2130706434 167772161 "
    "3232235521 2886729729 2852039166 1681915904 0x7f000001 0x7F.0.0.1 0x7f.1 0x7f.0x0.0x0.0x1 "
    "0x0a000001 0xc0a80001 0xA9FEA9FE 0xa9.0xfe.0xa9.0xfe 0300.0250.0.1 0177.0.0.1 0177.1 "
    "017700000001 0177.0000.0000.0001 012.0.0.1 025177524776 0251.0376.0251.0376 00000177.1 "
    "127.0x0.0.1 127.000.000.001 0x7f.0.1 169.0xfe.0251.254 4294967295 4294967296 "
    "127.0.0.1. 10.0.0.1. 2130706433. 0xffffffff 0x17f000001"
).split()
IPV6 = (
    "[::1] [::] [0:0:0:0:0:0:0:1] [0000::0001] [::0001] "
    # mapped, compatible, translated
    "[::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:10.0.0.1] "
    "[::ffff:192.168.0.1] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:0:0] "
    "[::ffff:8.8.8.8] [::127.0.0.1] [::7f00:1] [::10.0.0.1] [::ffff:0:127.0.0.1] "
    # NAT64, 6to4, Teredo
    "[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::a00:1] [64:ff9b::169.254.169.254] "
    "[64:ff9b::8.8.8.8] [64:ff9b:1::1] [2002::] [2002:7f00:1::] [2002:7f00:1::1] [2002:a00:1::] "
    "[2002:c0a8:1::1] [2002:a9fe:a9fe::] [2001::] [2001::1] [2001:0:7f00:1::] "
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2] "
    # unique local, link-local, site-local, with and without zones
    "[fc00::1] [fd00::1] [fd00:ec2::254] [fdff:ffff::1] [fe80::1] [fe80::1%lo] [fe80::1%25lo] "
    "[fe80::1%251] [::1%lo] [::1%25lo] [fe80::a9fe:a9fe] [febf::1] [fec0::1] [feff::1] "
    # multicast, documentation, discard, benchmarking, ORCHID, segment routing, unassigned
    "[ff02::1] [ff05::2] [ff0e::1] [2001:db8::1] [2001:db8:ffff::1] [3fff::1] [3fff:fff::1] "
    "[100::1] [100:0:0:1::1] [2001:2::1] [2001:10::1] [2001:20::1] [5f00::1] [4000::1] [1::1] "
    "[ffff::1]"
).split()
ADDRESSES = [
    *(f"http://{host}/hook" for host in IPV4 + ODD_IPV4 + IPV6),
    *(f"http://{host}/hook" for host in RESOLVER if host != "good.example.org"),
    "https://127.0.0.1/hook",
    "https://localhost/hook",
    "https://inside.example.org/hook",
    "http://127.0.0.1:8000/admin/",
    "http://[::1]:5432/",
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://localhost:6379/",
    "HTTP://LOCALHOST/hook",
    "http://LocalHost:80/hook",
    "http://inside.example.org:8443/hook",
    # Full-width digits, circled letters, other dots, escapes.
    "http://１２７.０.０.１/hook",
    "http://①②⑦.⓪.⓪.①/hook",
    "http://127。0。0。1/hook",
    "http://127．0．0．1/hook",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/hook",
    "http://ｌｏｃａｌｈｏｓｔ/hook",
    "http://localhost。/hook",
    "http://bücher.example.org/hook",
    "http://%6c%6f%63%61%6c%68%6f%73%74/hook",
    "http://%31%32%37.0.0.1/hook",
    "http://127.0.0.1%00.example.org/hook",
    # Who reads which part as the host?
    "http://good.example.org@127.0.0.1/hook",
    "http://good.example.org:80@127.0.0.1/hook",
    "http://user:password@good.example.org/hook",
    "http://user@good.example.org/hook",
    "http://127.0.0.1#@good.example.org/hook",
    "http://127.0.0.1?@good.example.org/hook",
    "http://good.example.org\\@127.0.0.1/hook",
    "http://127.0.0.1\\@good.example.org/hook",
    "http:\\\\127.0.0.1\\hook",
    "http:/127.0.0.1/hook",
    "http:127.0.0.1/hook",
    "http:///127.0.0.1/hook",
    "//127.0.0.1/hook",
    "127.0.0.1/hook",
    " http://127.0.0.1/hook",
    "http://127.0.0.1 .example.org/hook",
    "http://127.0.0.1\t/hook",
    "http://127.0.0.1\r\nHost: good.example.org/hook",
    "http://[::1/hook",
    "http://::1/hook",
    "http://[127.0.0.1]/hook",
    "http:///hook",
    "http://",
    "",
    # Other protocols, and ports on which others are at home.
    "file:///etc/passwd",
    "ftp://good.example.org/hook",
    "gopher://good.example.org:6379/_FLUSHALL",
    "unix:///var/run/docker.sock",
    "data:image/png;base64,aGVsbG8",
    "javascript:alert(1)",
    "ws://good.example.org/hook",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "http://good.example.org:22/hook",
    "http://good.example.org:25/hook",
    "http://good.example.org:0/hook",
    "http://good.example.org:6667/hook",
    "http://good.example.org:65536/hook",
    "http://good.example.org:-1/hook",
    "http://good.example.org:http/hook",
]
# Rebinding names are public when they are checked: one connection, and to that address.
NEVER_CONNECTED = [
    url for url in dict.fromkeys(ADDRESSES) if not any(name in url for name in REBINDING)
]
REBINDING_URLS = [f"http://{name}/hook" for name in REBINDING]

REDIRECTED = [
    "http://127.0.0.1/",
    "http://127.0.0.1:5432/",
    "http://[::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "//127.0.0.1/",
    "http://localhost/",
    "http://inside.example.org/",
    "http://2130706433/",
    "http://[::ffff:127.0.0.1]/",
    "file:///etc/passwd",
]
