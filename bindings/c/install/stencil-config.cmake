# Targets: stencil::runtime runs plans, stencil::compiler compiles programs too; link one of them.
# stencil::runtime_static is the runtime as a static library.
get_filename_component(_stencil_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_stencil_pair "runtime:stencil_runtime" "compiler:stencilc")
    string(REPLACE ":" ";" _stencil_pair "${_stencil_pair}")
    list(GET _stencil_pair 0 _stencil_target)
    list(GET _stencil_pair 1 _stencil_library)
    set(_stencil_file "${_stencil_prefix}/lib/lib${_stencil_library}.so")
    if(EXISTS "${_stencil_file}" AND NOT TARGET stencil::${_stencil_target})
        add_library(stencil::${_stencil_target} SHARED IMPORTED)
        set_target_properties(stencil::${_stencil_target} PROPERTIES
            IMPORTED_LOCATION "${_stencil_file}"
            IMPORTED_NO_SONAME TRUE
            INTERFACE_LINK_LIBRARIES m
            INTERFACE_INCLUDE_DIRECTORIES "${_stencil_prefix}/include")
    endif()
endforeach()
set(_stencil_file "${_stencil_prefix}/lib/libstencil_runtime.a")
if(EXISTS "${_stencil_file}" AND NOT TARGET stencil::runtime_static)
    add_library(stencil::runtime_static STATIC IMPORTED)
    set_target_properties(stencil::runtime_static PROPERTIES
        IMPORTED_LOCATION "${_stencil_file}"
        INTERFACE_LINK_LIBRARIES "dl;pthread;m"
        INTERFACE_INCLUDE_DIRECTORIES "${_stencil_prefix}/include")
endif()
