//! The comma-separated lists of pflag, which reads one record of CSV and forgets what follows it.

/// Reads a `strings` value: fields with their blanks, quotes as in CSV.
pub fn list(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // Go counts lines it skipped before the record.
    let mut number = 1;
    let mut lines = Lines { rest: text };
    let mut line = lines.next().unwrap_or_default();
    while line == "\n" || line.is_empty() {
        number += 1;
        match lines.next() {
            Some(next) => line = next,
            None => return Err("EOF".to_owned()),
        }
    }
    let record = Record {
        start: number,
        line,
        number,
        at: 0,
        lines,
    };
    record.fields()
}

/// Lines with their ends, `\r\n` read as `\n`, and a last lone `\r` dropped.
struct Lines<'a> {
    rest: &'a str,
}

impl Iterator for Lines<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        let line = match line.strip_suffix("\r\n") {
            Some(line) => format!("{line}\n"),
            None if rest.is_empty() => line.strip_suffix('\r').unwrap_or(line).to_owned(),
            None => line.to_owned(),
        };
        (!line.is_empty()).then_some(line)
    }
}

/// Where one field ends.
enum End {
    Comma,
    Record,
}

struct Record<'a> {
    /// The line the record starts on.
    start: usize,
    line: String,
    number: usize,
    at: usize,
    lines: Lines<'a>,
}

impl Record<'_> {
    fn fields(mut self) -> Result<Vec<String>, String> {
        let mut fields = Vec::new();
        loop {
            let quoted = self.line[self.at..].starts_with('"');
            let (field, end) = if quoted { self.quoted() } else { self.bare() }?;
            fields.push(field);
            if let End::Record = end {
                return Ok(fields);
            }
        }
    }

    fn bare(&mut self) -> Result<(String, End), String> {
        let rest = &self.line[self.at..];
        let comma = rest.find(',');
        let field = &rest[..comma.unwrap_or(rest.len())];
        let field = field.strip_suffix('\n').unwrap_or(field).to_owned();
        if let Some(quote) = field.find('"') {
            let column = self.at + quote + 1;
            return Err(self.fault(column, "bare \" in non-quoted-field"));
        }
        match comma {
            Some(comma) => {
                self.at += comma + 1;
                Ok((field, End::Comma))
            }
            None => Ok((field, End::Record)),
        }
    }

    fn quoted(&mut self) -> Result<(String, End), String> {
        let mut field = String::new();
        self.at += 1;
        loop {
            let rest = &self.line[self.at..];
            let Some(quote) = rest.find('"') else {
                field.push_str(rest);
                self.next_line()?;
                continue;
            };
            field.push_str(&rest[..quote]);
            self.at += quote + 1;
            match self.line[self.at..].chars().next() {
                Some('"') => field.push('"'),
                Some(',') => {
                    self.at += 1;
                    return Ok((field, End::Comma));
                }
                None | Some('\n') => return Ok((field, End::Record)),
                Some(_) => return Err(self.unclosed(self.at)),
            }
            self.at += 1;
        }
    }

    fn next_line(&mut self) -> Result<(), String> {
        let Some(line) = self.lines.next() else {
            return Err(self.unclosed(self.line.len() + 1));
        };
        self.line = line;
        self.number += 1;
        self.at = 0;
        Ok(())
    }

    fn unclosed(&self, column: usize) -> String {
        self.fault(column, "extraneous or missing \" in quoted-field")
    }

    fn fault(&self, column: usize, what: &str) -> String {
        let (start, line) = (self.start, self.number);
        let record = match start == line {
            true => String::new(),
            false => format!("record on line {start}; "),
        };
        format!("{record}parse error on line {line}, column {column}: {what}")
    }
}
