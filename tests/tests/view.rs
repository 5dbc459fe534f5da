//! What a session sees of the host: each view walked from inside, and held to the list that `view --print` prints.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use headwater_tests::bins::bin;
use headwater_tests::closure;
use headwater_tests::recording::{Studio, Take, Taken};
use serde_json::{Value, json};

/// A session of one `Bash` call.
fn bash(command: &str) -> Value {
    json!({"turns": [{"calls": [{"tool": "Bash", "input": {"command": command}}]}, {"text": "Done."}]})
}

/// A closure of this host's tools, and of both programs.
fn tools(studio: &Studio) -> Result<Vec<PathBuf>> {
    closure::closure(&studio.user, &[&studio.recorder, &studio.engine])
}

/// What a walk inside a session of `take` finds, against the list of the same options.
fn walked(studio: &Studio, name: &str, take: Take<'_>, options: &[&str]) -> Result<Value> {
    let workspace = studio.workspace(&format!("{name}-workspace"))?;
    fs::copy(bin(&studio.user, "headwater-walk")?, workspace.join("walk"))?;
    let take = take.script(&bash("./walk list.json walked.json"))?.set("--workspace", &workspace).with(options);
    let mut view = studio.user.command(&studio.recorder);
    view.args(["view", "--print", "--format", "json"]).args(options).arg("--workspace").arg(&workspace);
    view.arg("--engine").arg(&studio.engine).arg("--harness").arg(take.option("--harness").context("a harness")?);
    let list = view.output()?;
    anyhow::ensure!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    fs::write(workspace.join("list.json"), list.stdout)?;
    studio.user.give(&workspace)?;
    take.run()?.recorded()?;
    Ok(serde_json::from_slice(&fs::read(workspace.join("walked.json"))?)?)
}

#[track_caller]
fn agrees(walked: &Value, least: u64) {
    for what in ["strays", "unreached", "written", "refused"] {
        assert_eq!(walked[what], json!([]), "{what}: {walked}");
    }
    assert!(walked["walked"].as_u64().is_some_and(|n| n >= least), "{walked}");
}

#[test]
fn a_session_of_the_host_view_reaches_what_the_list_says_and_writes_where_it_says() -> Result<()> {
    let studio = Studio::new()?;
    agrees(&walked(&studio, "host", studio.take("host")?, &[])?, 1000);
    Ok(())
}

#[test]
fn a_session_of_the_closure_view_reaches_what_the_list_says_and_writes_where_it_says() -> Result<()> {
    let studio = Studio::new()?;
    let file = closure::file(&studio.user, "tools.paths", &tools(&studio)?)?;
    let options = ["--view", "closure", "--closure", file.to_str().context("UTF-8")?];
    agrees(&walked(&studio, "closure", studio.take("closure")?, &options)?, 100);
    Ok(())
}

/// A bwrap that mounts one directory more: before everything, or after it.
fn with_a_mount(studio: &Studio, name: &str, place: &str, last: bool) -> Result<PathBuf> {
    let source = studio.user.directory(&format!("{name}-source"))?;
    fs::write(source.join("file"), "not listed")?;
    let mount = format!("--ro-bind {} {place}", source.display());
    let script = if last {
        format!("#!/bin/sh\n[ $# -gt 2 ] || exec bwrap \"$@\"\na=$1 b=$2\nshift 2\nexec bwrap $a $b {mount} \"$@\"\n")
    } else {
        format!("#!/bin/sh\n[ $# -gt 2 ] || exec bwrap \"$@\"\nexec bwrap {mount} \"$@\"\n")
    };
    // The recorder clears the environment that it starts bwrap with.
    let bwrap = studio.user.command("sh").args(["-c", "command -v bwrap"]).output()?;
    let bwrap = String::from_utf8(bwrap.stdout)?;
    let path =
        studio.user.file(&format!("{name}-bwrap"), script.replace("exec bwrap", &format!("exec {}", bwrap.trim())))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

#[test]
fn a_mount_that_is_not_on_the_list_is_found_by_the_walk() -> Result<()> {
    let studio = Studio::new()?;
    let file = closure::file(&studio.user, "tools.paths", &tools(&studio)?)?;
    let closure = ["--closure", file.to_str().context("UTF-8")?];
    for (name, options) in [("one", &[][..]), ("two", &closure)] {
        let bwrap = with_a_mount(&studio, name, "/srv/unlisted", false)?;
        let found = walked(&studio, name, studio.take(name)?.set("--bwrap", bwrap), options)?;
        assert_eq!(found["strays"], json!(["/srv", "/srv/unlisted", "/srv/unlisted/file"]), "{found}");
    }
    // One below what the session has for itself is where the list says that it may write.
    let bwrap = with_a_mount(&studio, "three", "/tmp/unlisted", true)?;
    let found = walked(&studio, "three", studio.take("three")?.set("--bwrap", bwrap), &[])?;
    let refused = found["refused"].as_array().context("refused")?;
    assert_eq!(refused.len(), 2, "{found}");
    Ok(())
}

#[test]
fn a_session_works_in_a_closure_and_sees_nothing_else() -> Result<()> {
    let studio = Studio::new()?;
    let file = closure::file(&studio.user, "tools.paths", &tools(&studio)?)?;
    let command = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && \
                   git log --oneline | sed 's/^/log /' && echo one > f && grep one f && /bin/sh -c 'echo sh' && \
                   printf '#!/usr/bin/env bash\\necho env $0\\n' > s && chmod +x s && ./s && id -un && date +%Z && \
                   headwater --version && ls / && ls /etc; ls /home /root /var /usr/share /etc/shadow; echo PATH=$PATH; echo all-well";
    let taken =
        studio.take("work")?.script(&bash(command))?.with(&["--closure", file.to_str().context("UTF-8")?]).run()?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.clone().context("the raw log")?)?;
    for seen in ["all-well", "log ", "env ./s", "session", "UTC"] {
        assert!(raw.contains(seen), "{seen}: {raw}");
    }
    assert_eq!(raw.matches("No such file or directory").count() % 5, 0, "{raw}");
    let confinement = taken.statement("Confinement")?;
    assert!(
        confinement.contains(", closure view,") && confinement.contains(" paths of a closure, read-only"),
        "{confinement}"
    );
    Ok(())
}

#[test]
fn a_closure_that_shows_what_no_session_may_see_is_refused_before_anything_is_spent() -> Result<()> {
    let studio = Studio::new()?;
    let tools = tools(&studio)?;
    let store = studio.user.directory("nix")?.join("store");
    fs::create_dir(&store)?;
    let workspace = studio.workspace("given")?;
    let document = studio.corpus.join("docs/README.md");
    let out = studio.user.home().join("out-of-all");
    fs::create_dir(&out)?;
    studio.user.give(&out)?;
    let home = studio.user.home().to_path_buf();
    let deep = studio.user.directory("deep")?;
    let account = studio.user.directory("deep/account")?;
    let configuration = studio.user.directory("configuration")?;
    studio.user.directory("configuration/skills")?;
    let secrets = studio.user.directory("secrets")?;
    let token = "sk-ant-oat01-invented-0123456789-0123456789";
    let login = json!({"claudeAiOauth": {
        "accessToken": token, "refreshToken": token.replace("oat", "ort"), "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference"], "subscriptionType": "max",
    }});
    let login = studio.user.file("secrets/login.json", login.to_string())?;
    for (name, path, status, words) in [
        ("corpus", studio.corpus.as_path(), 12, "it is a corpus"),
        ("document", &document, 6, "it would show the corpus"),
        ("store", &store, 12, "a whole store"),
        ("root", Path::new("/"), 12, "a whole tree of the host"),
        ("usr", Path::new("/usr"), 12, "a whole tree of the host"),
        ("workspace", &workspace.join("docs"), 12, "of the closure"),
        ("account", &deep, 12, "it would show the home"),
        ("harness", &configuration.join("skills"), 12, "the harness's own configuration"),
        ("credentials", &secrets, 12, "could read the credentials"),
        ("home", &home, 12, "a whole tree of the host"),
        ("relative", Path::new("relative/path"), 2, "not absolute"),
        ("missing", Path::new("/nowhere/to/be/found"), 2, "No such file"),
        ("out", &out, 2, "what the session sees"),
    ] {
        let lines: Vec<_> = tools.iter().cloned().chain([path.to_owned()]).collect();
        let file = closure::file(&studio.user, &format!("closure-{name}"), &lines)?;
        let mut take = studio.take(&format!("of-{name}"))?.with(&["--closure", file.to_str().context("UTF-8")?]);
        match name {
            "account" => take = take.environment("HOME", &account),
            "harness" => take = take.environment("CLAUDE_CONFIG_DIR", &configuration),
            "credentials" => take = take.program("#!/bin/sh\n")?.set("--credentials", &login),
            "workspace" => take = take.set("--workspace", &workspace),
            "out" => take = take.set("--out", out.join("t.md")),
            _ => {}
        }
        take.run()?.refused(status, &[words]);
    }
    Ok(())
}

#[test]
fn a_closure_without_a_library_of_the_launcher_is_refused_with_its_name() -> Result<()> {
    let studio = Studio::new()?;
    let tools = tools(&studio)?;
    for (name, library, words) in [("real", "libgcc_s.so.1", "libgcc_s.so.1"), ("loader", "ld-linux", "ld-linux")] {
        let lines: Vec<_> = tools.iter().filter(|path| !path.to_string_lossy().contains(library)).cloned().collect();
        assert!(lines.len() < tools.len(), "{library} is in no path");
        let file = closure::file(&studio.user, &format!("closure-{name}"), &lines)?;
        let taken = studio.take(name)?.with(&["--closure", file.to_str().context("UTF-8")?]).run()?;
        taken.refused(2, &[words, "the launcher"]);
    }
    Ok(())
}

#[test]
fn the_options_of_a_view_go_together_or_are_refused() -> Result<()> {
    let studio = Studio::new()?;
    let file = closure::file(&studio.user, "tools.paths", &tools(&studio)?)?;
    let file = file.to_str().context("UTF-8")?;
    for (name, options) in [("none", &["--view", "closure"][..]), ("both", &["--view", "host", "--closure", file])] {
        studio.take(name)?.with(options).run()?.refused(2, &["closure"]);
    }
    Ok(())
}

#[test]
fn a_session_that_is_explained_is_not_started_and_is_the_one_that_would_be() -> Result<()> {
    let studio = Studio::new()?;
    let file = closure::file(&studio.user, "tools.paths", &tools(&studio)?)?;
    for (name, options) in [("host", &[][..]), ("tools", &["--closure", file.to_str().context("UTF-8")?])] {
        let take = || Ok::<_, anyhow::Error>(studio.take(&format!("{name}-0"))?.with(options));
        let explained = take()?.with(&["--explain", "--format", "json"]).run()?;
        assert_eq!(explained.status, Some(0), "{}", explained.stderr);
        assert!(explained.document.is_none() && explained.raw.is_none());
        explained.left_nothing();
        let explanation: Value = serde_json::from_str(&explained.stdout)?;
        assert_eq!(explanation["harness"][0], "/opt/headwater/harness/claude");
        assert_eq!(explanation["environment"]["HOME"], "/opt/headwater/config");
        let recorded = studio.take(&format!("{name}-1"))?.with(options).run()?;
        recorded.recorded()?;
        let digest = explanation["seccomp"]["digest"].as_str().context("a digest")?;
        let statement = recorded.statement("Confinement")?;
        assert!(statement.contains(digest), "{statement}");
        assert!(statement.contains(&format!("Landlock of ABI {}", explanation["landlock"]["abi"])), "{statement}");

        let text = studio.take(&format!("{name}-2"))?.with(options).with(&["--explain"]).run()?;
        assert_eq!(text.status, Some(0), "{}", text.stderr);
        let lines: Vec<_> = text.stdout.lines().collect();
        for line in ["  --cap-drop ALL \\", "  --clearenv \\", "  --remount-ro / \\", "/: ReadDir", "# environment"] {
            assert!(lines.contains(&line), "{line}: {}", text.stdout);
        }
        text.left_nothing();
    }
    Ok(())
}

/// A root directory as a Nix host has it: everything in a store, `/usr` empty, `/etc` links. The programs and libraries
/// are this host's own, and find each other by links from `/lib` and the loader's place into the store.
struct NixHost {
    root: PathBuf,
    closure: Vec<PathBuf>,
}

const STORE: &str = "nix/store/0123456789abcdfghijklmnpqrsvwxyz-tools";

impl NixHost {
    fn new(studio: &Studio) -> Result<Self> {
        let root = studio.user.directory("nix-host")?;
        let store = root.join(STORE);
        let etc = root.join("nix/store/zyxwvsrqpnmlkjihgfdcba9876543210-etc/etc");
        for directory in [&store.join("bin"), &store.join("lib"), &etc] {
            fs::create_dir_all(directory)?;
        }
        for name in ["bin", "dev", "etc", "lib64", "proc", "tmp", "usr"] {
            fs::create_dir(root.join(name))?;
        }
        let link = |target: &str, place: &str| std::os::unix::fs::symlink(target, root.join(place));
        link(&format!("/{STORE}/lib"), "lib")?;
        link(&format!("/{STORE}/bin/sh"), "bin/sh")?;
        link("/nix/store/zyxwvsrqpnmlkjihgfdcba9876543210-etc/etc", "etc/static")?;
        for name in ["passwd", "group", "hosts", "resolv.conf", "nsswitch.conf"] {
            fs::write(etc.join(name), "")?;
            link(&format!("/etc/static/{name}"), &format!("etc/{name}"))?;
        }
        let mut closure = vec![Path::new("/").join(STORE), "/lib".into()];
        let bwrap = closure::found("bwrap").context("bwrap")?;
        let programs = closure::closure(&studio.user, &[&studio.recorder, &studio.engine, &bwrap])?;
        for path in programs.iter().chain([&bwrap, &studio.recorder, &studio.engine]).filter(|path| path.is_file()) {
            let name = path.file_name().context("a name")?;
            let is_library = name.to_string_lossy().contains(".so");
            fs::copy(path, store.join(if is_library { "lib" } else { "bin" }).join(name))?;
            // The one library that is named by its place.
            if name.to_string_lossy().starts_with("ld-") {
                link(&format!("/{STORE}/lib/{}", name.display()), &path.to_string_lossy()[1..])?;
                closure.push(path.clone());
            }
        }
        studio.user.give(&root)?;
        Ok(Self { root, closure })
    }

    /// `take` on that host, by its programs alone.
    fn run(&self, studio: &Studio, take: &Take<'_>) -> Result<Taken> {
        let command = take.command();
        let mut outer = studio.user.command("bwrap");
        outer.args(["--unshare-user", "--unshare-pid", "--die-with-parent", "--bind"]).arg(&self.root).arg("/");
        outer.args(["--proc", "/proc", "--dev", "/dev", "--bind", "/tmp", "/tmp", "--clearenv"]);
        for (name, value) in command.get_envs().filter(|(name, _)| *name != "PATH") {
            outer.arg("--setenv").arg(name).arg(value.unwrap_or_default());
        }
        outer.args(["--setenv", "PATH", &format!("/{STORE}/bin"), "--"]);
        outer.arg(format!("/{STORE}/bin/headwater-recorder")).args(command.get_args());
        let output = outer.output()?;
        take.taken(&output)
    }
}

#[test]
fn a_host_without_usr_and_with_an_etc_of_links_records_with_a_closure() -> Result<()> {
    let studio = Studio::new()?;
    let host = NixHost::new(&studio)?;
    let file = closure::file(&studio.user, "store.paths", &host.closure)?;
    let command = "ls / /usr /etc /nix/store; printf '#!/usr/bin/env bash\\necho env\\n' > s && chmod +x s && ./s && \
                   git init -q r && id -un && /bin/sh -c 'echo all-well'";
    let engine = format!("/{STORE}/bin/headwater");
    let take = studio
        .take("nix")?
        .script(&bash(command))?
        .set("--engine", &engine)
        .with(&["--closure", file.to_str().context("UTF-8")?]);
    let taken = host.run(&studio, &take)?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.context("the raw log")?)?;
    assert!(raw.contains("all-well") && raw.contains("0123456789abcdfghijklmnpqrsvwxyz-tools"), "{raw}");
    assert!(!raw.contains("static") && !raw.contains("-etc\\n"), "{raw}");
    // The host view of such a host holds nothing that could run.
    host.run(&studio, &studio.take("nix-host-view")?.set("--engine", &engine))?.refused(12, &["launcher", "--closure"]);
    Ok(())
}
