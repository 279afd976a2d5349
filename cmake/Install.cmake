# What is built by `programs` and put where by `install`, beyond what the folders install themselves.

# The man pages and completions are printed by hec from its own tables.
set(HEC_SHARE ${CMAKE_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${HEC_SHARE}/docs.stamp
  COMMAND ${CMAKE_SOURCE_DIR}/scripts/gen-docs $<TARGET_FILE:hec> ${HEC_SHARE}
  COMMAND ${CMAKE_COMMAND} -E touch ${HEC_SHARE}/docs.stamp
  DEPENDS hec ${CMAKE_SOURCE_DIR}/scripts/gen-docs
  COMMENT "man pages and completions"
  VERBATIM)
add_custom_target(docs ALL DEPENDS ${HEC_SHARE}/docs.stamp)

# Everything that is installed, and no test.
get_property(doubles DIRECTORY ${CMAKE_SOURCE_DIR}/sim PROPERTY BUILDSYSTEM_TARGETS)
add_custom_target(programs DEPENDS hec hec_agent_module hec_top_module docs hec_mark hec_trace ${doubles})

# hec finds the Python side in the build tree where it finds it in the installed one.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/hec)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/hec/python SYMBOLIC)

install(DIRECTORY ${HEC_SHARE}/man DESTINATION ${CMAKE_INSTALL_DATADIR})
install(DIRECTORY ${HEC_SHARE}/bash-completion ${HEC_SHARE}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR})
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/InstallPython.cmake)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hec)
