import { ArchiveError } from "./archive-error.ts";

/** Blocks of tar (POSIX.1-1988 `ustar`, with the extended headers of POSIX.1-2001 for what does not fit). */

export const BLOCK_BYTES = 512;

export type TarType = "file" | "link" | "symlink" | "folder";

export type TarHeader = {
  /** Without slashes at its ends. */
  path: string;
  type: TarType;
  mode: number;
  uid: number;
  gid: number;
  sizeBytes: number;
  /** Whole seconds since 1970. */
  modifiedSecs: number;
  /** Where a link leads; empty otherwise. */
  target: string;
};

const FLAGS: Readonly<Record<TarType, string>> = { file: "0", link: "1", symlink: "2", folder: "5" };
export const EXTENDED_FLAG = "x";

const NAME_BYTES = 100;
/** What other programs put before a longer name. */
const PREFIX_BYTES = 155;
const SIZE_DIGITS = 11;

/** The blocks before an entry's content. */
export function headerBlocks(header: TarHeader): Buffer {
  const name = header.type === "folder" ? `${header.path}/` : header.path;
  const records = [
    ...(Buffer.byteLength(name) > NAME_BYTES ? [record("path", name)] : []),
    ...(Buffer.byteLength(header.target) > NAME_BYTES ? [record("linkpath", header.target)] : []),
    ...(header.sizeBytes >= 8 ** SIZE_DIGITS ? [record("size", String(header.sizeBytes))] : []),
  ];
  const block = plainBlock({ ...header, path: name }, FLAGS[header.type]);
  if (records.length === 0) return block;
  const body = Buffer.concat(records);
  const about = { ...header, path: "pax", target: "", sizeBytes: body.byteLength, mode: 0o644, uid: 0, gid: 0 };
  return Buffer.concat([
    plainBlock({ ...about, modifiedSecs: 0 }, EXTENDED_FLAG),
    body,
    padding(body.byteLength),
    block,
  ]);
}

/** Zeroes up to the next whole block. */
export function padding(sizeBytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

/** What an archive ends with. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

function plainBlock(header: TarHeader, flag: string): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  // What does not fit is in the extended header; here it is cut.
  Buffer.from(header.path).copy(block, 0, 0, NAME_BYTES);
  octal(header.mode, 100, 7);
  octal(header.uid, 108, 7);
  octal(header.gid, 116, 7);
  octal(header.sizeBytes >= 8 ** SIZE_DIGITS ? 0 : header.sizeBytes, 124, SIZE_DIGITS);
  octal(header.modifiedSecs, 136, SIZE_DIGITS);
  block.write(" ".repeat(8), 148, "latin1");
  block.write(flag, 156, "latin1");
  Buffer.from(header.target).copy(block, 157, 0, NAME_BYTES);
  block.write("ustar\x0000", 257, "latin1");
  block.write(`${checksumOf(block).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

/** `LENGTH KEY=VALUE\n`; the length counts itself. */
function record(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const restBytes = Buffer.byteLength(rest);
  let length = restBytes + 1;
  while (String(length).length + restBytes !== length) length = String(length).length + restBytes;
  return Buffer.from(`${length}${rest}`);
}

function checksumOf(block: Buffer): number {
  let sum = 0;
  for (const [at, byte] of block.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte;
  return sum;
}

export type ParsedHeader = Omit<TarHeader, "type"> & { type: TarType | "extended" };

/** Undefined for a block of zeroes, with which archives end. Throws `ArchiveError`. */
export function parseHeader(block: Buffer): ParsedHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (numberAt(block, 148, 8) !== checksumOf(block)) throw new ArchiveError("a header of the archive is damaged");
  const name = textAt(block, 0, NAME_BYTES);
  const prefix = block.toString("latin1", 257, 263) === "ustar\0" ? textAt(block, 345, PREFIX_BYTES) : "";
  return {
    path: prefix === "" ? name : `${prefix}/${name}`,
    type: typeOf(block.toString("latin1", 156, 157)),
    mode: numberAt(block, 100, 8),
    uid: numberAt(block, 108, 8),
    gid: numberAt(block, 116, 8),
    sizeBytes: numberAt(block, 124, 12),
    modifiedSecs: numberAt(block, 136, 12),
    target: textAt(block, 157, NAME_BYTES),
  };
}

/** The keys of an extended header that mean something here. Throws `ArchiveError` for others. */
export function parseExtended(body: Buffer): { path?: string; target?: string; sizeBytes?: number } {
  const found: { path?: string; target?: string; sizeBytes?: number } = {};
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(0x20, at);
    const length = space === -1 ? Number.NaN : Number(body.toString("latin1", at, space));
    const text =
      Number.isSafeInteger(length) && at + length <= body.length ? body.subarray(space + 1, at + length) : undefined;
    const [, key, value] = /^(path|linkpath|size)=([^]*)\n$/.exec(text === undefined ? "" : utf8(text)) ?? [];
    if (value === undefined) throw new ArchiveError("an extended header of the archive is not accepted");
    if (key === "path") found.path = value;
    else if (key === "linkpath") found.target = value;
    else found.sizeBytes = Number(value);
    at += length;
  }
  return found;
}

function typeOf(flag: string): TarType | "extended" {
  if (flag === EXTENDED_FLAG) return "extended";
  const types: readonly TarType[] = ["file", "link", "symlink", "folder"];
  const type = types.find((one) => FLAGS[one] === flag);
  if (type === undefined) throw new ArchiveError(`an entry of the archive is of the kind ${JSON.stringify(flag)}`);
  return type;
}

function numberAt(block: Buffer, at: number, length: number): number {
  const text = block
    .toString("latin1", at, at + length)
    .replace(/[\0 ]+$/, "")
    .trimStart();
  if (!/^[0-7]+$/.test(text)) throw new ArchiveError("a number in a header of the archive is none");
  return Number.parseInt(text, 8);
}

function textAt(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  // A name that was cut may end in the middle of a character: then the extended header has the whole.
  return field.subarray(0, end === -1 ? length : end).toString("utf8");
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ArchiveError("a name in the archive is not UTF-8", { cause: error });
  }
}
