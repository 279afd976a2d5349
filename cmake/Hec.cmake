# Settings and helpers of the whole build.
option(HEC_TESTS "build the tests" ON)
option(HEC_FUZZ "build the libFuzzer targets (clang)" OFF)
set(HEC_SANITIZE "" CACHE STRING "sanitizers, as for -fsanitize=")
option(HEC_WERROR "warnings are errors" OFF)
option(HEC_PORTABLE "find shared libraries beside the program, wherever the tree is (make portable)" OFF)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# hec finds its libraries by a path relative to itself: lib/ in every tree, unless somebody packages it otherwise.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "folder of the libraries, below the prefix")
include(GNUInstallDirs)

# The build tree has the shape of the installed one, so that hec finds its libraries the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})

add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
                    -Wno-missing-field-initializers)
if(HEC_WERROR)
  add_compile_options(-Werror)
endif()

# The binaries name no folder of the machine that built them.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(HEC_SANITIZE)
  add_compile_options(-fsanitize=${HEC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${HEC_SANITIZE})
  if(HEC_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
else()
  # hec reads files and rings that others wrote
  add_compile_options(-fstack-protector-strong)
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  add_link_options(-Wl,-z,relro,-z,now)
endif()
add_compile_definitions(_GNU_SOURCE HEC_VERSION="${PROJECT_VERSION}" HEC_LIBDIR="${CMAKE_INSTALL_LIBDIR}"
                        HEC_DATADIR="${CMAKE_INSTALL_DATADIR}")

if(HEC_PORTABLE)
  # DT_RPATH, not DT_RUNPATH: it also counts for the libraries that the libraries need
  add_link_options(-Wl,--disable-new-dtags)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()

# hec_library(NAME USES other... LIBS external... [RECURSE]): the static library of one folder of src/.
function(hec_library name)
  cmake_parse_arguments(ARG "RECURSE" "" "USES;LIBS" ${ARGN})
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  endif()
  add_library(hec_${name} STATIC ${sources})
  target_include_directories(hec_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  list(TRANSFORM ARG_USES PREPEND hec_)
  target_link_libraries(hec_${name} PUBLIC ${ARG_USES} ${ARG_LIBS})
endfunction()

# hec_protobuf(LIBRARY NAME): the code that protoc-c makes of src/LIBRARY/NAME.proto, in the folder's library.
function(hec_protobuf library name)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/proto/${name}.pb-c)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/proto)
  add_custom_command(
    OUTPUT ${made}.c ${made}.h
    COMMAND ${HEC_PROTOC_C} --c_out=${CMAKE_CURRENT_BINARY_DIR}/proto -I${CMAKE_SOURCE_DIR}/src/${library} ${name}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/${library}/${name}.proto VERBATIM)
  target_sources(hec_${library} PRIVATE ${made}.c ${made}.h)
  target_include_directories(hec_${library} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/proto)
endfunction()
