//! The guard: a library that the loader maps into the harness before the harness's own first instruction. It closes
//! the process to every other process of its user, so that no tool call can open its descriptors, its memory or its
//! environment through `/proc`, attach to it or take its output over.
//!
//! The kernel opens a process to its user again at each exec, so this cannot be done before it. The guard takes itself
//! out of the environment, so that what the harness starts is as it always is.
//!
//! Freestanding, so that it is the same for every C library and needs none of them in the view: one file of a few
//! kilobytes, without an allocation, a lock or a symbol of its own.

#![no_std]

use core::arch::asm;

/// What the guard says on standard output, before anything of the harness can be there; the same as `GUARDED` in
/// `recorder/src/confine/sandbox.rs`.
const GUARDED: &[u8] = b"guarded\n";
/// The exit code where the process cannot be closed; the same as `REFUSED` in `recorder/src/confine/launcher.rs`.
const REFUSED: usize = 125;
const PRELOAD: &[u8] = b"LD_PRELOAD=";

const PR_GET_DUMPABLE: usize = 3;
const PR_SET_DUMPABLE: usize = 4;

#[cfg(target_arch = "x86_64")]
mod call {
    pub const WRITE: usize = 1;
    pub const PRCTL: usize = 157;
    pub const EXIT_GROUP: usize = 231;
}
#[cfg(target_arch = "aarch64")]
mod call {
    pub const WRITE: usize = 64;
    pub const PRCTL: usize = 167;
    pub const EXIT_GROUP: usize = 94;
}

type Entry = *const u8;

unsafe extern "C" {
    /// Of the C library of the harness, which is mapped whenever this is.
    static mut __environ: *mut Entry;
}

#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn(i32, *const Entry, *mut Entry) = init;

/// Run by the loader. The GNU loader hands the environment over and may run this before its C library knows it; musl's
/// knows it by then and hands nothing over.
extern "C" fn init(_count: i32, _arguments: *const Entry, given: *mut Entry) {
    // SAFETY: one thread, before the program; the calls take integers. The list of the environment is the one that the
    // kernel wrote: pointers to strings that end with NUL, ended by a null pointer.
    unsafe {
        let set = system_call(call::PRCTL, PR_SET_DUMPABLE, 0, 0);
        let closed = set == 0 && system_call(call::PRCTL, PR_GET_DUMPABLE, 0, 0) == 0;
        let known = __environ;
        leave(if known.is_null() { given } else { known });
        let said = closed && system_call(call::WRITE, 1, GUARDED.as_ptr() as usize, GUARDED.len()) == GUARDED.len();
        if !said {
            system_call(call::EXIT_GROUP, REFUSED, 0, 0);
        }
    }
}

/// Takes the entry that named this library out of the environment.
unsafe fn leave(list: *mut Entry) {
    let (mut from, mut to) = (list, list);
    // SAFETY: as the caller promises; `to` is never beyond `from`, which stops at the null pointer.
    unsafe {
        while !(*from).is_null() {
            if !starts_with(*from, PRELOAD) {
                *to = *from;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = core::ptr::null();
    }
}

unsafe fn starts_with(text: *const u8, prefix: &[u8]) -> bool {
    let mut at = text;
    for expected in prefix {
        // SAFETY: a byte that differs stops this, the NUL at the end of the string among them.
        unsafe {
            if *at != *expected {
                return false;
            }
            at = at.add(1);
        }
    }
    true
}

#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: usize, a: usize, b: usize, c: usize) -> usize {
    let result;
    // SAFETY: the registers of the kernel's convention; it changes no other than those named.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") 0,
             in("r8") 0, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: usize, a: usize, b: usize, c: usize) -> usize {
    let result;
    // SAFETY: the registers of the kernel's convention; it changes no other than those named.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") 0, in("x4") 0,
             options(nostack));
    }
    result
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
