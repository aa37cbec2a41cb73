//! Tests of windows.
use super::*;
#[test]
fn look() {
    let text = std::fs::read_to_string("/tmp/p.json").unwrap();
    let plan = Plan::from_json(&text, "p").unwrap();
    let request = crate::bind::Request { steps: Some(3000), ..Default::default() };
    let bound = crate::bind::bind(&plan, &request).unwrap();
    for gib in [1, 2, 4, 8] {
        let t = std::time::Instant::now();
        println!("{gib} {:?} {:?}", windows_of(&plan, &bound, DeviceMemory(gib << 30)), t.elapsed());
    }
}
