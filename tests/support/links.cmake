# cmake -D PROGRAM=P -D NAMES=A,B -D FOLDER=F -P links.cmake: links called A and B beside the program P of the folder.
string(REPLACE "," ";" names "${NAMES}")
foreach(name IN LISTS names)
  file(CREATE_LINK ${PROGRAM} ${FOLDER}/${name} SYMBOLIC)
endforeach()
