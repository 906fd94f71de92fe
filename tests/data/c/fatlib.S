/* What clang puts into a host object: two bundles, and a wrapper for each. */
        .section .hip_fatbin, "a", @progbits
        .p2align FATBIN_ALIGN
#ifdef EXPORTED
        .globl fat_bundle
#endif
#if defined EXPORTED || defined NAMED
fat_bundle:
#endif
.Lfirst:
        .incbin "first.bundle"
        .p2align FATBIN_ALIGN
.Lsecond:
        .incbin "second.bundle"
#ifdef JUNK
        .ascii "junk"
#endif
#ifdef ENDED
        .globl fat_bundle_end
fat_bundle_end:
#endif
        .section .hipFatBinSegment, "aw", @progbits
        .p2align 3
        .hidden wrappers
        .globl wrappers
wrappers:
        .long 0x48495046, 1
        .quad .Lfirst, 0
        .long 0x48495046, 1
#ifdef LOST
        .quad 0, 0
#else
        .quad .Lsecond, 0
#endif
#ifdef EXTRA
        .long 0x48495046, 1
        .quad 0, 0
#endif
#ifdef STRAY
        .data
        .quad .Lsecond
#endif
        .section .note.GNU-stack, "", @progbits
