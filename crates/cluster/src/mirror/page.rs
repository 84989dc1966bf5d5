//! A page of a list, read object by object as it comes.
//!
//! The library holds a page three times over before it reads the first object of it: in the pieces
//! that came, as one piece, and as a text. Of a page read here no more is held than one object. What
//! an object means is the caller's.

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::api::{ListMeta, ListParams, ObjectList};
use kube::core::Request;
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;
use std::pin::pin;

/// Asks for a page, hands on each object, and says what the server says of the page itself.
pub(super) async fn page<K>(
    api: &Api<K>,
    how: &ListParams,
    mut each: impl FnMut(K),
) -> Result<ListMeta, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    let request = request::<K>(api.resource_url(), how)?;
    let client = api.clone().into_client();
    read(client.request_stream(request).await?, &mut each).await
}

/// The library's own request for a page.
fn request<K: Resource>(url: &str, how: &ListParams) -> Result<http::Request<Vec<u8>>, Error> {
    let list = Request::new(url);
    let (request, name) = match K::metadata_api() {
        true => (list.list_metadata(how), "list_metadata"),
        false => (list.list(how), "list"),
    };
    let mut request = request.map_err(Error::BuildRequest)?;
    // What it is called in traces.
    request.extensions_mut().insert(name);
    Ok(request)
}

async fn read<K>(body: impl AsyncBufRead, each: &mut impl FnMut(K)) -> Result<ListMeta, Error>
where
    K: Clone + DeserializeOwned,
{
    let mut body = pin!(body);
    let mut cut = Cut::default();
    loop {
        let piece = body.fill_buf().await.map_err(Error::ReadEvents)?;
        if piece.is_empty() {
            break;
        }
        for byte in piece {
            if let Some(object) = cut.object(*byte) {
                each(serde_json::from_slice(object).map_err(Error::SerdeError)?);
            }
        }
        let taken = piece.len();
        body.consume_unpin(taken);
    }
    let rest: ObjectList<K> = serde_json::from_slice(&cut.frame).map_err(Error::SerdeError)?;
    // None, unless the server writes in a way that is not understood here.
    rest.items.into_iter().for_each(each);
    Ok(rest.metadata)
}

/// Cuts the objects out of the text of a list. What is left of it is a list too, of whatever was not
/// cut out; so a text that is no list is refused by whoever reads the rest.
#[derive(Default)]
struct Cut {
    /// Everything but objects.
    frame: Vec<u8>,
    /// An object, as far as it has come.
    object: Vec<u8>,
    /// How many brackets and braces are open.
    depth: usize,
    place: Place,
    /// The last text of the outermost object, to its end: where a list follows, a field's name.
    name: Vec<u8>,
    /// Whether this is in the list of objects.
    items: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Between,
    Text,
    /// In a text, after a backslash.
    Escaped,
}

/// The name of the field that has the objects, and the end of the text.
const ITEMS: &[u8] = b"items\"";
/// How deep the objects are: in a list in the outermost object.
const AMONG_ITEMS: usize = 2;

impl Cut {
    /// Takes the next byte; an object, where one is complete with it.
    fn object(&mut self, byte: u8) -> Option<&[u8]> {
        let (before, was) = (self.depth, self.place);
        self.walk(byte);
        let deepest = self.depth.max(before);
        if self.items && deepest > AMONG_ITEMS {
            if before == AMONG_ITEMS {
                self.object.clear();
            }
            self.object.push(byte);
            return (self.depth == AMONG_ITEMS).then_some(&*self.object);
        }
        let separates = self.items && deepest == AMONG_ITEMS && byte == b',';
        if !(separates && was == Place::Between) {
            self.frame.push(byte);
        }
        None
    }

    fn walk(&mut self, byte: u8) {
        if self.place != Place::Between && self.depth == 1 {
            self.name.push(byte);
        }
        match (self.place, byte) {
            (Place::Escaped, _) => self.place = Place::Text,
            (Place::Text, b'\\') => self.place = Place::Escaped,
            (Place::Text, b'"') => self.place = Place::Between,
            (Place::Text, _) => {}
            (Place::Between, b'"') => {
                self.place = Place::Text;
                if self.depth == 1 {
                    self.name.clear();
                }
            }
            (Place::Between, b'{' | b'[') => {
                self.items |= self.depth == 1 && byte == b'[' && self.name == ITEMS;
                self.depth += 1;
            }
            (Place::Between, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                self.items &= self.depth >= AMONG_ITEMS;
            }
            (Place::Between, _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
