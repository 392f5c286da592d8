cmake_minimum_required(VERSION 3.22)
# cmake -DSCHEMA=schema.json -DOUT=schema_text.c -P embed_schema.cmake
include(${CMAKE_CURRENT_LIST_DIR}/embed_bytes.cmake)
file(READ ${SCHEMA} text)
embed_bytes(ctl_schema_text "${text}" bytes)
file(WRITE ${OUT} "#include \"fabricctl/service/service.h\"\n${bytes}")
