# Set OUT to the C definition of an array of bytes, NAME, and of its size, NAME_size.
function(embed_bytes name text out)
  file(WRITE "${OUT}.${name}" "${text}")
  file(READ "${OUT}.${name}" bytes HEX)
  file(REMOVE "${OUT}.${name}")
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  set(${out} "const unsigned char ${name}[] = {\n${bytes}};\nconst size_t ${name}_size = sizeof ${name};\n" PARENT_SCOPE)
endfunction()
