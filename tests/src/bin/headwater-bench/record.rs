//! The whole of `record`.

use crate::measure::{in_turns, ms};
use anyhow::Result;
use headwater_tests::user::User;
use headwater_tests::{bins, corpus};

/// The whole `record` with a scripted session of one call, against bare bwrap.
pub fn record(user: &User) -> Result<()> {
    let root = corpus::corpus(user, "corpus")?;
    let script = user.file(
        "one-call.json",
        r#"{"turns":[{"calls":[{"tool":"Read","input":{"file_path":"{workspace}/README.md"}}]},{"text":"done"}],"cost_usd":0}"#,
    )?;
    let (recorder, engine) = (bins::bin(user, "headwater-recorder")?, bins::bin(user, "headwater")?);
    let out = user.directory("out")?;
    let mut n = 0;
    let mut ours = || {
        n += 1;
        let mut command = user.command(&recorder);
        command.arg("record").arg("--corpus").arg(&root).args(["--probe", "WM-PR-0001", "--session", "bench"]);
        command.arg("--engine").arg(&engine).arg("--out").arg(out.join(format!("{n}.md")));
        command.arg("--harness").arg(format!("scripted:{}", script.display()));
        command
    };
    let bwrap = || {
        let mut command = user.command("bwrap");
        command.args(["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--cap-drop", "ALL"]);
        command.args(["--die-with-parent", "--new-session", "--clearenv", "--ro-bind", "/", "/", "--proc", "/proc"]);
        command.args(["--dev", "/dev", "--tmpfs", "/tmp", "true"]);
        command
    };
    let [recorded, bare] = in_turns(30, [&mut ours, &mut { bwrap }])?;
    println!(
        "record of one scripted call  {:>8.1} ms   bwrap … true  {:>8.1} ms   {:+.1} ms (aim: at most +60 ms)",
        ms(recorded),
        ms(bare),
        ms(recorded) - ms(bare)
    );
    Ok(())
}
