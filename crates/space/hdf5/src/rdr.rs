//! JPSS Raw Data Record files: where in an HDF5 file granules and what is said of them lie.
//!
//! | path | what |
//! |---|---|
//! | `/` | attributes of the file |
//! | `/All_Data/NAME_All/RawApplicationPackets_N` | the Common RDR of granule N, bytes |
//! | `/Data_Products/NAME` | attributes of the collection |
//! | `/Data_Products/NAME/NAME_Aggr` | refers to `/All_Data/NAME_All`; first and last granule, their number |
//! | `/Data_Products/NAME/NAME_Gran_N` | refers to all of granule N; its attributes |

use crate::error::Error;
use crate::file::File;
use crate::library::Library;
use skyhaul_level0::rdr::{
    Attribute, Collection, FileFacts, GranuleId, GranuleRef, GranuleSpan, PackedGranule, Satellite,
    Value,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Writes a Raw Data Record file, granule by granule.
#[derive(Debug)]
pub struct RdrWriter {
    file: File,
    facts: FileFacts,
    /// By short name.
    written: BTreeMap<String, Written>,
}

/// The granules of a collection that are written.
#[derive(Debug)]
struct Written {
    first: (GranuleId, GranuleSpan),
    last: (GranuleId, GranuleSpan),
    number: u32,
}

impl RdrWriter {
    /// Begins a file, in place of one that is there. The same content gives the same bytes.
    ///
    /// # Errors
    /// [`Error`] of this and all further calls: the file is then to be removed.
    pub fn create(
        library: Library,
        path: &Path,
        satellite: &Satellite,
        facts: FileFacts,
    ) -> Result<Self, Error> {
        let file = File::create(library, path)?;
        attributes(&file, "/", &facts.root(satellite))?;
        file.group(ALL_DATA)?;
        file.group(PRODUCTS)?;
        Ok(Self { file, facts, written: BTreeMap::new() })
    }

    /// Writes the next granule of a collection; granules of one are to come by time.
    ///
    /// # Errors
    /// [`Error`]
    pub fn granule(
        &mut self,
        collection: &Collection,
        granule: &PackedGranule,
    ) -> Result<(), Error> {
        let name = &collection.short_name;
        let place = self.written.get(name).map_or(0, |written| written.number);
        let group = format!("{PRODUCTS}/{name}");
        if place == 0 {
            self.file.group(&format!("{ALL_DATA}/{name}_All"))?;
            self.file.group(&group)?;
            attributes(&self.file, &group, &self.facts.collection(collection))?;
        }
        let packets = format!("{ALL_DATA}/{name}_All/{PACKETS}{place}");
        self.file.bytes(&packets, &granule.blob)?;
        let described = format!("{group}/{name}_Gran_{place}");
        self.file.region_reference(&described, &packets)?;
        attributes(&self.file, &described, &self.facts.granule(collection, granule))?;
        let this = (granule.id.clone(), granule.span);
        let written = Written { first: this.clone(), last: this.clone(), number: 0 };
        let written = self.written.entry(name.clone()).or_insert(written);
        written.number += 1;
        written.last = this;
        Ok(())
    }

    /// Writes what is said of all granules, and closes the file.
    ///
    /// # Errors
    /// [`Error`]
    pub fn finish(self) -> Result<(), Error> {
        for (name, written) in &self.written {
            let aggregate = format!("{PRODUCTS}/{name}/{name}_Aggr");
            self.file.object_reference(&aggregate, &format!("{ALL_DATA}/{name}_All"))?;
            let (first, last) = (&written.first, &written.last);
            let said = self.facts.aggregate(
                GranuleRef { id: &first.0, span: first.1 },
                GranuleRef { id: &last.0, span: last.1 },
                written.number,
            );
            attributes(&self.file, &aggregate, &said)?;
        }
        self.file.close()
    }
}

fn attributes(file: &File, path: &str, attributes: &[Attribute]) -> Result<(), Error> {
    attributes
        .iter()
        .try_for_each(|attribute| file.attribute(path, &attribute.name, &attribute.value))
}

/// Reads a Raw Data Record file, made here or elsewhere.
#[derive(Debug)]
pub struct RdrReader {
    file: File,
    collections: BTreeMap<String, Vec<u32>>,
}

impl RdrReader {
    /// Opens a file and finds its granules.
    ///
    /// # Errors
    /// [`Error::Library`]: it is not there, or no HDF5 file; [`Error::Content`]: it has no Raw Data
    /// Records.
    pub fn open(library: Library, path: &Path) -> Result<Self, Error> {
        let file = File::open(library, path)?;
        let nothing = || {
            Error::content(&path.display().to_string(), "is an HDF5 file without Raw Data Records")
        };
        if !file.exists(ALL_DATA)? {
            return Err(nothing());
        }
        let mut collections = BTreeMap::new();
        for group in file.members(ALL_DATA)? {
            let Some(name) = group.strip_suffix("_All") else { continue };
            let place = |member: &String| member.strip_prefix(PACKETS)?.parse::<u32>().ok();
            let mut places: Vec<u32> =
                file.members(&format!("{ALL_DATA}/{group}"))?.iter().filter_map(place).collect();
            places.sort_unstable();
            if !places.is_empty() {
                collections.insert(name.to_owned(), places);
            }
        }
        if collections.is_empty() { Err(nothing()) } else { Ok(Self { file, collections }) }
    }

    /// Short names of the collections.
    pub fn collections(&self) -> impl Iterator<Item = &str> {
        self.collections.keys().map(String::as_str)
    }

    /// Numbers of a collection's granules, ascending.
    pub fn granules(&self, collection: &str) -> &[u32] {
        self.collections.get(collection).map_or(&[], Vec::as_slice)
    }

    /// The Common RDR of a granule.
    ///
    /// # Errors
    /// [`Error`]: it cannot be read, or is larger than 2 GiB, which no Common RDR can be.
    pub fn blob(&self, collection: &str, granule: u32) -> Result<Vec<u8>, Error> {
        self.file.read_bytes(
            &format!("{ALL_DATA}/{collection}_All/{PACKETS}{granule}"),
            i32::MAX as usize,
        )
    }

    /// An attribute of the file.
    ///
    /// # Errors
    /// [`Error`]: it cannot be read.
    pub fn attribute(&self, name: &str) -> Result<Option<Value>, Error> {
        self.file.read_attribute("/", name)
    }

    /// An attribute of a granule; `None` where it, or the granule's description, is not there.
    ///
    /// # Errors
    /// [`Error`]: it cannot be read.
    pub fn granule_attribute(
        &self,
        collection: &str,
        granule: u32,
        name: &str,
    ) -> Result<Option<Value>, Error> {
        let described = format!("{PRODUCTS}/{collection}/{collection}_Gran_{granule}");
        if !self.file.exists(&described)? {
            return Ok(None);
        }
        self.file.read_attribute(&described, name)
    }
}

const ALL_DATA: &str = "/All_Data";
const PRODUCTS: &str = "/Data_Products";
const PACKETS: &str = "RawApplicationPackets_";
