//! Names that the function of a program can't have, because the C of `--emit=c` or a C++ program
//! that includes its header has them.

/// Words of C that SL itself leaves free.
const C: [&str; 6] = ["inline", "register", "restrict", "union", "volatile", "asm"];

/// Names of systems, which GNU C replaces by 1 on them.
const GNU: [&str; 2] = ["linux", "unix"];

/// Words of C++ that are none of C.
const CPP: [&str; 58] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "bitand",
    "bitor",
    "catch",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "typeof",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
];

/// Functions and macros of `stddef.h`, `stdio.h`, `stdlib.h` and `string.h`, with those that
/// systems add.
const LIBRARY: &str = "\
    NULL offsetof \
    BUFSIZ EOF FILE FILENAME_MAX FOPEN_MAX L_tmpnam SEEK_CUR SEEK_END SEEK_SET TMP_MAX clearerr \
    ctermid dprintf fclose fdopen feof ferror fflush fgetc fgetpos fgets fileno flockfile fmemopen \
    fopen fprintf fputc fputs fread freopen fscanf fseek fseeko fsetpos ftell ftello \
    ftrylockfile funlockfile fwrite getc getchar getdelim getline gets getw open_memstream pclose \
    perror popen printf putc putchar puts putw remove rename renameat rewind scanf setbuf \
    setbuffer setlinebuf setvbuf snprintf sprintf sscanf stderr stdin stdout tempnam tmpfile \
    tmpnam ungetc vasprintf asprintf vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf \
    vsscanf \
    EXIT_FAILURE EXIT_SUCCESS MB_CUR_MAX RAND_MAX abort abs aligned_alloc alloca arc4random atexit \
    atof atoi atol atoll at_quick_exit bsearch calloc clearenv div drand48 erand48 exit free \
    getenv getloadavg grantpt initstate jrand48 labs lcong48 ldiv llabs lldiv lrand48 malloc mblen \
    mbstowcs mbtowc mkdtemp mkstemp mktemp mrand48 nrand48 posix_memalign ptsname putenv qsort \
    quick_exit rand random realloc reallocarray realpath seed48 setenv setstate srand srand48 \
    srandom strtod strtof strtol strtold strtoll strtoul strtoull system unlockpt unsetenv valloc \
    wcstombs wctomb \
    bcmp bcopy bzero explicit_bzero ffs index memccpy memchr memcmp memcpy memmem memmove mempcpy \
    memset rindex stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup \
    strerror strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk \
    strrchr strsep strsignal strspn strstr strtok strxfrm";

/// Functions of `math.h`, which the code of a processor calls; those for `float` end with an `f`,
/// those for `long double` with an `l`.
const MATH: &str = "\
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 \
    fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2 logb \
    lrint lround modf nan nearbyint nextafter pow remainder remquo rint round scalbn sin sinh sqrt \
    tan tanh tgamma trunc";

/// Names of the emitted file's own.
const OWN: [&str; 12] = [
    "is_possible",
    "keep",
    "last_iterations",
    "last_status",
    "own_message",
    "plan_json",
    "program",
    "ptx_text",
    "read_address",
    "read_address_count",
    "read_count",
    "read_data",
];

/// The owner of a name that a function can't have; none for a name that is free.
pub fn owner(name: &str) -> Option<&'static str> {
    let plain = name.strip_suffix(['f', 'l']).unwrap_or(name);
    let is_library = LIBRARY.split_whitespace().any(|word| word == name)
        || MATH.split_whitespace().any(|word| word == name || word == plain);
    let is_limit = |text: &str| {
        let text = text.strip_prefix('U').unwrap_or(text);
        ["INT", "SIZE_M", "PTRDIFF_M", "WCHAR_M", "WINT_M", "SIG_ATOMIC_M"]
            .iter()
            .any(|begin| text.starts_with(begin))
            && (text.ends_with("_MAX") || text.ends_with("_MIN") || text.ends_with("_C"))
    };
    if name == "main" {
        Some("the function that a program in C begins with")
    } else if C.contains(&name) {
        Some("a word of C")
    } else if GNU.contains(&name) {
        Some("a macro of GNU C")
    } else if CPP.contains(&name) {
        Some("a word of C++")
    } else if name.ends_with("_t") || is_limit(name) || is_library {
        Some("a name of the C library")
    } else if OWN.contains(&name) || name.starts_with("stencil") || name.starts_with("STENCIL_") {
        Some("a name of the files that --emit=c writes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn words_and_names_of_c_have_an_owner() {
        for (name, found) in [
            ("main", "the function that a program in C begins with"),
            ("volatile", "a word of C"),
            ("unix", "a macro of GNU C"),
            ("class", "a word of C++"),
            ("malloc", "a name of the C library"),
            ("sqrtf", "a name of the C library"),
            ("INT8_MAX", "a name of the C library"),
            ("UINT64_C", "a name of the C library"),
            ("size_t", "a name of the C library"),
            ("keep", "a name of the files that --emit=c writes"),
        ] {
            assert_eq!(owner(name), Some(found), "{name}");
        }
        for name in ["runHotspot", "Laplace", "INTERIOR", "freed", "half"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
