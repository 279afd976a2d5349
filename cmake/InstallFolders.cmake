# Folders of the installation: users can enter them, and others than root cannot write there, whatever the umask. CMake makes
# them as the umask says, but for those that are copied whole: they are made before.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(CODE "include(${CMAKE_SOURCE_DIR}/cmake/InstallFolder.cmake)
foreach(folder ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_INCLUDEDIR}/hec ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_DATADIR}/doc/hec
        ${CMAKE_INSTALL_DATADIR}/hec/python ${CMAKE_INSTALL_LIBDIR}/hec/sim/old ${CMAKE_INSTALL_LIBDIR}/hec/sim/cupti-11.8
        ${CMAKE_INSTALL_LIBDIR}/hec/sim/cupti-12 ${CMAKE_INSTALL_LIBDIR}/hec/sim/cupti-13)
  make_folder(\${CMAKE_INSTALL_PREFIX}/\${folder})
endforeach()")
