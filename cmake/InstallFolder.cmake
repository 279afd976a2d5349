# At install: a folder below DESTDIR, with those above it that are not there, which users can enter whatever the umask.
function(make_folder folder)
  if(NOT folder STREQUAL "/" AND NOT EXISTS $ENV{DESTDIR}${folder})
    cmake_path(GET folder PARENT_PATH parent)
    make_folder(${parent})
    file(MAKE_DIRECTORY $ENV{DESTDIR}${folder})
    file(CHMOD $ENV{DESTDIR}${folder} PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
  endif()
endfunction()
