use super::error::RdrError;
use super::source::PacketFileSource;

fn packet(apid: u16, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len];
    bytes[..2].copy_from_slice(&apid.to_be_bytes());
    bytes[4..6].copy_from_slice(&((len - 7) as u16).to_be_bytes());
    bytes
}

/// Places and lengths of the packets of a file with this content, and the bytes that were cut.
fn read(content: &[u8]) -> Result<(Vec<(u64, usize)>, usize), RdrError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets");
    std::fs::write(&path, content).unwrap();
    let mut source = PacketFileSource::open(&path)?;
    let mut places = Vec::new();
    let cut = source.read(|offset, packet| {
        places.push((offset, packet.len()));
        Ok(())
    })?;
    let mut again = Vec::new();
    for (offset, len) in &places {
        source.packet(*offset, *len as u32, &mut again)?;
        assert_eq!(again, content[*offset as usize..][..*len]);
    }
    Ok((places, cut))
}

#[test]
fn packets_are_found_across_reads_and_found_again() {
    let content: Vec<u8> = (0..60).flat_map(|at| packet(at, 65_542 - usize::from(at))).collect();
    let (places, cut) = read(&content).unwrap();
    assert_eq!((places.len(), cut), (60, 0));
    assert_eq!(places.last().unwrap().0 + 65_542 - 59, content.len() as u64);
    assert_eq!(read(&[]).unwrap(), (vec![], 0));
}

#[test]
fn a_packet_that_was_cut_is_told_and_anything_else_refused() {
    let whole = packet(11, 71);
    for len in [1, 5, 6, 70] {
        let content = [&whole[..], &whole[..len]].concat();
        assert_eq!(read(&content).unwrap(), (vec![(0, 71)], len), "{len}");
    }
    let content = [&whole[..], &[0xFF; 20]].concat();
    assert!(matches!(read(&content), Err(RdrError::NotPackets { offset: 71, .. })));
    // An encapsulation packet that would be 4 GiB long.
    let mut lying = vec![0u8; 200_000];
    lying[..8].copy_from_slice(&[0xEB, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(matches!(read(&lying), Err(RdrError::NotPackets { offset: 0, .. })));
    let missing = PacketFileSource::open("no/such/file".as_ref()).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file cannot be read"), "{missing}");
}
