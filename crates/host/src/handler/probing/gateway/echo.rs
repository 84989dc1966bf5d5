//! Echo requests of ICMP and ICMPv6, and which packets answer them.

use super::super::peer::random;

/// Which of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// ICMP. A packet is read with its header of IPv4 before it, and the checksum is ours to make.
    V4,
    /// ICMPv6. A packet is read without any header of IPv6, and the kernel makes the checksum.
    V6,
}

/// A request, by what an answer has to repeat. Others on the host ask too, perhaps with the same
/// identifier; nobody else has this payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Echo {
    version: Version,
    identifier: u16,
    sequence: u16,
    payload: [u8; 16],
}

/// Type, code, checksum, identifier, sequence.
const HEADER: usize = 8;
/// A header of IPv4 without options.
const SHORTEST_IPV4: usize = 20;
/// The number of ICMP in a header of IPv4.
const ICMP: u8 = 1;

impl Version {
    const fn request(self) -> u8 {
        match self {
            Self::V4 => 8,
            Self::V6 => 128,
        }
    }

    const fn reply(self) -> u8 {
        match self {
            Self::V4 => 0,
            Self::V6 => 129,
        }
    }
}

impl Echo {
    /// A request nobody has made yet.
    pub(super) fn new(version: Version) -> Self {
        let [a, b, c, d, ..] = random().to_be_bytes();
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&random().to_be_bytes());
        payload[8..].copy_from_slice(&random().to_be_bytes());
        Self {
            version,
            identifier: u16::from_be_bytes([a, b]),
            sequence: u16::from_be_bytes([c, d]),
            payload,
        }
    }

    /// The packet that asks.
    pub(super) fn request(&self) -> Vec<u8> {
        let mut packet = self.packet(self.version.request());
        if self.version == Version::V4 {
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    /// Whether a packet, as the kernel gives it, answers this request.
    pub(super) fn is_answered_by(&self, packet: &[u8]) -> bool {
        let message = match self.version {
            Version::V4 => within_ipv4(packet),
            Version::V6 => Some(packet),
        };
        let wanted = self.packet(self.version.reply());
        // The checksum is between kernel and gateway.
        message.is_some_and(|it| {
            it.len() == wanted.len() && it[..2] == wanted[..2] && it[4..] == wanted[4..]
        })
    }

    fn packet(&self, kind: u8) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + self.payload.len());
        packet.extend([kind, 0, 0, 0]);
        packet.extend(self.identifier.to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.payload);
        packet
    }
}

/// What a packet of IPv4 carries, where that is ICMP.
fn within_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let (version, words) = (packet.first()? >> 4, packet.first()? & 0xf);
    let header = usize::from(words) * 4;
    let is_icmp = version == 4 && header >= SHORTEST_IPV4 && packet.get(9) == Some(&ICMP);
    packet.get(header..).filter(|_| is_icmp)
}

/// The checksum of the internet: the one's complement of the sum of all pairs of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

    /// As the kernel gives what a gateway sent back.
    fn reply(echo: &Echo) -> Vec<u8> {
        let message = echo.packet(echo.version.reply());
        match echo.version {
            Version::V4 => after_ipv4(5, message),
            Version::V6 => message,
        }
    }

    /// After a header of IPv4 with so many words.
    fn after_ipv4(words: u8, message: Vec<u8>) -> Vec<u8> {
        let mut packet = vec![0; usize::from(words) * 4];
        packet[0] = 0x40 | words;
        packet[9] = ICMP;
        packet.extend(message);
        packet
    }

    #[test]
    fn a_request_is_what_the_protocol_says() {
        let echo = Echo {
            version: Version::V4,
            identifier: 0x1234,
            sequence: 0x5678,
            payload: *b"abcdefghijklmnop",
        };
        let packet = echo.request();
        assert_eq!(packet[..2], [8, 0], "an echo request");
        assert_eq!(packet[4..8], [0x12, 0x34, 0x56, 0x78]);
        assert_eq!(&packet[8..], b"abcdefghijklmnop");
        assert_eq!(checksum(&packet), 0, "a sum with its checksum is zero");
        let echo = Echo {
            version: Version::V6,
            ..echo
        };
        let packet = echo.request();
        assert_eq!(packet[..4], [128, 0, 0, 0], "the kernel fills in the rest");
    }

    /// The example of RFC 1071, and an odd number of bytes.
    #[test]
    fn a_checksum_is_that_of_the_internet() {
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff, 0xff, 1]), !0x0100);
    }

    #[test]
    fn a_reply_answers_whatever_the_header_before_it() {
        for version in VERSIONS {
            let echo = Echo::new(version);
            assert!(echo.is_answered_by(&reply(&echo)), "{version:?}");
        }
        let echo = Echo::new(Version::V4);
        let packet = after_ipv4(15, echo.packet(echo.version.reply()));
        assert!(echo.is_answered_by(&packet), "with options");
    }

    #[test]
    fn neither_the_request_itself_nor_an_answer_to_another_answers() {
        for version in VERSIONS {
            let (echo, other) = (Echo::new(version), Echo::new(version));
            let own = match version {
                Version::V4 => after_ipv4(5, echo.request()),
                Version::V6 => echo.request(),
            };
            assert!(!echo.is_answered_by(&own), "{version:?}: its own request");
            assert!(!echo.is_answered_by(&reply(&other)), "{version:?}");
            let same_numbers = Echo {
                payload: other.payload,
                ..echo.clone()
            };
            assert!(!echo.is_answered_by(&reply(&same_numbers)), "{version:?}");
        }
    }

    #[test]
    fn a_reply_that_is_cut_or_has_one_byte_wrong_does_not_answer() {
        for version in VERSIONS {
            let echo = Echo::new(version);
            let whole = reply(&echo);
            for length in 0..whole.len() {
                assert!(!echo.is_answered_by(&whole[..length]), "{length} bytes");
            }
            let message = whole.len() - HEADER - echo.payload.len();
            for place in (message..whole.len()).filter(|it| !(2..4).contains(&(it - message))) {
                let mut wrong = whole.clone();
                wrong[place] ^= 1;
                assert!(!echo.is_answered_by(&wrong), "{version:?}: byte {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_that_comes_by_chance_answers(bytes in vec(any::<u8>(), 0..128)) {
            for version in VERSIONS {
                let echo = Echo::new(version);
                prop_assert!(!echo.is_answered_by(&bytes));
            }
        }
    }
}
