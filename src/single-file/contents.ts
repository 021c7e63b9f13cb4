/**
 * What the single file carries: one archive of the files that the program consists of, and a table of contents, by which
 * each start checks what an earlier one unpacked. Both are assets of Node's single executable application.
 */
export type Contents = {
  /** SHA-256 of the compressed archive, in hexadecimal: the name of the folder that it is unpacked into. */
  id: string;
  /** Bytes of the archive before it was compressed. */
  sizeBytes: number;
  /** In the order in which they stand in the archive, which is nothing but their bytes. */
  files: readonly PackedFile[];
};

export type PackedFile = {
  /** Below the folder; parts are separated by `/`. */
  path: string;
  sizeBytes: number;
  isExecutable: boolean;
};

/** The names of the two assets. */
export const CONTENTS_ASSET = "contents.json";
export const ARCHIVE_ASSET = "files.zst";

/** The file to run, and beside its folder the plain Node that children are started with. */
export const ENTRY = "bin/engine.js";
export const NODE = "node";

/**
 * What Node's single executable is marked with; the digit behind it says whether there is a program inside. In two
 * parts, so that the mark is found in Node's own code alone.
 */
export function fuse(): string {
  return ["NODE_SEA_FUSE", "fce680ab2cc467b6e072b8b5df1996b2"].join("_");
}

/** Throws unless the path stays below the folder and takes no name that the folder needs for itself. */
export function checkPath(path: string): void {
  const parts = path.split("/");
  const isPlain = parts.every((part) => /^\.?[\w@+-][\w@+.-]*$/.test(part));
  if (!isPlain || parts[0] === NODE)
    throw new Error(`a file of the archive has the unusable path ${JSON.stringify(path)}`);
}
