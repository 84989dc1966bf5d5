//! Images that are written already: nothing is written twice of the same files.

use crate::image::{Content, Image, Written, file};
use crate::libraries::state;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A note beside an image: what it was made of, and what came of it.
#[derive(Serialize, Deserialize)]
struct Note {
    made_of: Vec<String>,
    written: Written,
}

/// Writes an image, unless it is there and was made of the same.
pub(super) fn write(image: &Image, folder: &Path) -> io::Result<Written> {
    let made_of = made_of(image)?;
    let file = file(&image.name, folder);
    let note = file.with_extension("json");
    let kept = std::fs::read(&note).ok();
    let kept: Option<Note> = kept.and_then(|it| serde_json::from_slice(&it).ok());
    let whole = |note: &Note| {
        let size = std::fs::metadata(&file).map(|it| it.len());
        size.is_ok_and(|size| size == note.written.size) && note.written.file == file
    };
    if let Some(kept) = kept.filter(|it| it.made_of == made_of && whole(it)) {
        return Ok(kept.written);
    }
    // Without a note nobody takes it for whole while it is not.
    let _ = std::fs::remove_file(&note);
    let written = image.write(folder)?;
    let text = serde_json::to_vec(&Note {
        made_of,
        written: written.clone(),
    })?;
    std::fs::write(&note, text)?;
    Ok(written)
}

fn made_of(image: &Image) -> io::Result<Vec<String>> {
    let mut parts = vec![image.name.clone(), image.config("").to_string()];
    for (path, content) in &image.content {
        parts.push(match content {
            Content::Program(source) => format!("{path} program {}", state(source)?),
            Content::File(source) => format!("{path} file {}", state(source)?),
            Content::Link(target) => format!("{path} -> {target}"),
            Content::Folder(mode) => format!("{path}/ {mode:o}"),
        });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_written_again_when_a_file_of_it_is_another() {
        let name = format!("keelson-kept-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("source");
        let program = |text: &str| {
            std::fs::write(&source, text).expect("a file");
            Image {
                name: "localhost/example:1".into(),
                entrypoint: vec!["/program".into()],
                user: "1:1".into(),
                content: [("program".to_owned(), Content::Program(source.clone()))].into(),
            }
        };
        let image = program("one");
        let first = write(&image, &folder).expect("an image");
        let marked = b"it was not written again";
        let mut bytes = std::fs::read(&first.file).expect("its file");
        bytes[..marked.len()].copy_from_slice(marked);
        std::fs::write(&first.file, &bytes).expect("a mark");
        assert_eq!(write(&image, &folder).expect("an image"), first);
        assert!(
            std::fs::read(&first.file)
                .expect("its file")
                .starts_with(marked)
        );

        let other = write(&program("two"), &folder).expect("an image");
        assert_ne!(other.digest, first.digest);
        assert!(
            !std::fs::read(&first.file)
                .expect("its file")
                .starts_with(marked)
        );
        // One that was cut off is not taken for whole.
        std::fs::write(&other.file, "cut").expect("a file");
        assert_eq!(
            write(&program("two"), &folder).expect("an image").size,
            other.size
        );
        assert_eq!(
            std::fs::metadata(&other.file).expect("its file").len(),
            other.size
        );
        std::fs::remove_dir_all(folder).expect("removal");
    }
}
