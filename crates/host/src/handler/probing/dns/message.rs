//! Questions to a name server, and which packets answer them (RFC 1035).
//!
//! Only as much as tells an answer: what it says is not read.

use std::fmt;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// An address of IPv4.
    A,
    /// An address of IPv6.
    Aaaa,
    /// A name server of a zone.
    Ns,
}

impl Record {
    const fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Ns => 2,
            Self::Aaaa => 28,
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Ns => "NS",
        })
    }
}

/// A text that is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no name server can be asked for {0:?}: a name has parts of 1 to 63 characters with dots between \
     them, 253 characters in all"
)]
pub(super) struct NoName(String);

/// A question about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    id: u16,
    /// Name, type and class, as they stand in a packet.
    section: Vec<u8>,
}

/// What a server said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is such a record, or so much that it does not fit into a packet.
    Found,
    /// There is none.
    Nothing,
    /// The server did not do as asked.
    Failed(Code),
}

/// Why a server did not do as asked; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(u8);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("FORMERR"),
            2 => f.write_str("SERVFAIL"),
            3 => f.write_str("NXDOMAIN"),
            4 => f.write_str("NOTIMP"),
            5 => f.write_str("REFUSED"),
            other => write!(f, "code {other}"),
        }
    }
}

/// Identifier, flags, and how many entries each of the four sections has.
const HEADER: usize = 12;
/// The longest name in a packet, with the lengths of its parts and its end.
const LONGEST_NAME: usize = 255;
const LONGEST_PART: usize = 63;
/// The class of the internet.
const INTERNET: u16 = 1;

/// First byte of the flags: this is a response, to what kind of question, cut, to be looked up for us.
const RESPONSE: u8 = 0x80;
const KIND: u8 = 0x78;
const CUT: u8 = 0x02;
const RECURSE: u8 = 0x01;
/// Second byte of the flags: why the server did not do as asked.
const CODE: u8 = 0x0f;

impl Question {
    /// Asks for a record of a host.
    pub(super) fn new(id: u16, host: &str, record: Record) -> Result<Self, NoName> {
        let mut section = name(host).ok_or_else(|| NoName(host.to_owned()))?;
        section.extend(record.number().to_be_bytes());
        section.extend(INTERNET.to_be_bytes());
        Ok(Self { id, section })
    }

    /// The packet that asks.
    pub(super) fn packet(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + self.section.len());
        packet.extend(self.id.to_be_bytes());
        packet.extend([RECURSE, 0]);
        // One question, and nothing else.
        packet.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        packet.extend(&self.section);
        packet
    }

    /// What a packet says to this question; none where it is no answer to it.
    pub(super) fn answered_by(&self, packet: &[u8]) -> Option<Answer> {
        let (header, rest) = packet.split_first_chunk::<HEADER>()?;
        let [a, b, flags, code, c, d, e, f, ..] = *header;
        let [id, questions, answers] = [[a, b], [c, d], [e, f]].map(u16::from_be_bytes);
        let is_ours = id == self.id && flags & RESPONSE != 0 && flags & KIND == 0;
        let is_repeated = match questions {
            1 => rest.get(..self.section.len()).is_some_and(|it| self.is(it)),
            // A server that could not even read a question does not repeat it.
            0 => code & CODE != 0,
            _ => false,
        };
        if !is_ours || !is_repeated {
            return None;
        }
        Some(match (code & CODE, answers) {
            (0, 0) if flags & CUT == 0 => Answer::Nothing,
            (0, _) => Answer::Found,
            (code, _) => Answer::Failed(Code(code)),
        })
    }

    /// Whether a section asks the same. Servers may write a name in capitals; lengths and numbers are
    /// no letters.
    fn is(&self, section: &[u8]) -> bool {
        section.eq_ignore_ascii_case(&self.section)
    }
}

/// A name as it stands in a packet: each part after its length, and an empty one at the end.
fn name(host: &str) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(host.len() + 2);
    for part in host.strip_suffix('.').unwrap_or(host).split('.') {
        let length = u8::try_from(part.len()).ok()?;
        if part.is_empty() || part.len() > LONGEST_PART || !part.is_ascii() {
            return None;
        }
        name.push(length);
        name.extend(part.bytes());
    }
    name.push(0);
    (name.len() <= LONGEST_NAME).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const HOST: &str = "root-servers.net";

    fn question() -> Question {
        Question::new(0xbeef, HOST, Record::Ns).expect("a name")
    }

    /// An answer to a question with these flags, and so many records.
    fn answer(question: &Question, flags: [u8; 2], records: u8) -> Vec<u8> {
        let mut packet = question.packet();
        packet[2..4].copy_from_slice(&flags);
        packet[7] = records;
        // A server of the root, by a pointer to the name in the question.
        let record = [0xc0, 12, 0, 2, 0, 1, 0, 0, 0, 60, 0, 4, 1, b'a', 0xc0, 12];
        packet.extend(std::iter::repeat_n(record, records.into()).flatten());
        packet
    }

    #[test]
    fn a_question_is_what_the_protocol_says() {
        let mut expected = vec![0xbe, 0xef, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        expected.extend(b"\x0croot-servers\x03net\x00");
        expected.extend([0, 2, 0, 1]);
        assert_eq!(question().packet(), expected);
        let dotted = Question::new(0xbeef, "root-servers.net.", Record::Ns);
        assert_eq!(dotted.as_ref(), Ok(&question()), "a dot at the end is none");
    }

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        let long_part = "a".repeat(64);
        let long_name = ["a".repeat(63).as_str(); 4].join(".");
        for text in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "ä.example",
            &long_part,
            &long_name,
        ] {
            let refused = Question::new(1, text, Record::A).expect_err(text);
            assert!(refused.to_string().contains(text), "{refused}");
        }
        let longest = [
            "a".repeat(63),
            "b".repeat(63),
            "c".repeat(63),
            "d".repeat(61),
        ];
        Question::new(1, &longest.join("."), Record::A).expect("253 characters");
    }

    #[test]
    fn answers_are_told_apart() {
        let question = question();
        let said = |flags, records| question.answered_by(&answer(&question, flags, records));
        assert_eq!(said([0x85, 0], 1), Some(Answer::Found));
        assert_eq!(said([0x81, 0x80], 13), Some(Answer::Found));
        assert_eq!(said([0x81, 0x80], 0), Some(Answer::Nothing));
        assert_eq!(said([0x83, 0x80], 0), Some(Answer::Found), "too long");
        assert_eq!(said([0x81, 0x82], 0), Some(Answer::Failed(Code(2))));
        assert_eq!(said([0x81, 0x83], 1), Some(Answer::Failed(Code(3))));
        let codes = [1, 2, 3, 4, 5, 9].map(|code| Code(code).to_string());
        let names = [
            "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "code 9",
        ];
        assert_eq!(codes, names);
    }

    #[test]
    fn a_name_may_be_repeated_in_capitals() {
        let packet = answer(&question(), [0x81, 0x80], 1);
        let loud = packet.to_ascii_uppercase();
        let mut said = packet[..HEADER].to_vec();
        said.extend(&loud[HEADER..]);
        assert_eq!(question().answered_by(&said), Some(Answer::Found));
    }

    #[test]
    fn a_failure_may_come_without_the_question() {
        let mut packet = answer(&question(), [0x81, 0x81], 0);
        packet.truncate(HEADER);
        packet[5] = 0;
        let said = question().answered_by(&packet);
        assert_eq!(said, Some(Answer::Failed(Code(1))));
        packet[3] = 0x80;
        packet[7] = 1;
        assert_eq!(question().answered_by(&packet), None, "but nothing else");
    }

    #[test]
    fn what_answers_another_question_answers_none_of_ours() {
        let question = question();
        let others = [
            Question::new(0xbeee, HOST, Record::Ns),
            Question::new(0xbeef, HOST, Record::A),
            Question::new(0xbeef, "root-server.net", Record::Ns),
        ];
        for other in others {
            let other = other.expect("a name");
            let said = question.answered_by(&answer(&other, [0x81, 0x80], 1));
            assert_eq!(said, None, "{other:?}");
        }
        let good = answer(&question, [0x81, 0x80], 1);
        let changed = |place: usize, value: u8| {
            let mut packet = good.clone();
            packet[place] = value;
            question.answered_by(&packet)
        };
        assert_eq!(changed(2, 0x01), None, "a question");
        assert_eq!(changed(2, 0xa9), None, "an answer to a notification");
        assert_eq!(changed(5, 2), None, "two questions");
        assert_eq!(question.answered_by(&question.packet()), None, "our own");
    }

    #[test]
    fn an_answer_that_ends_within_the_question_is_none() {
        let question = question();
        let whole = answer(&question, [0x81, 0x80], 0);
        for length in 0..whole.len() {
            let said = question.answered_by(&whole[..length]);
            assert_eq!(said, None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange_to_read(bytes in vec(any::<u8>(), 0..600), near in any::<bool>()) {
            let question = question();
            let mut packet = bytes;
            if near && packet.len() >= 2 {
                packet[..2].copy_from_slice(&question.id.to_be_bytes());
            }
            // Without the question in it nothing is found, whatever else it says.
            prop_assert_ne!(question.answered_by(&packet), Some(Answer::Found));
        }

        #[test]
        fn any_text_is_a_name_or_refused(text in "\\PC{0,80}", dots in "[a-c.]{0,300}") {
            for host in [text, dots] {
                if let Ok(question) = Question::new(1, &host, Record::A) {
                    prop_assert!(question.packet().len() <= HEADER + LONGEST_NAME + 4);
                }
            }
        }
    }
}
