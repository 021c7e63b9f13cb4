/**
 * The place of a dropped file among the input positions: its source is its key, its position how many rows it had and
 * what it was (`ObjectInfo.identity`) when they were committed.
 */
export type FilePosition = { identity: string; rows: number };

export const SOURCE_PREFIX = "filedrop:";

export function sourceOf(key: string): string {
  return `${SOURCE_PREFIX}${key}`;
}

export function encodePosition({ identity, rows }: FilePosition): string {
  return `${rows} ${identity}`;
}

export function decodePosition(position: string): FilePosition {
  const end = position.indexOf(" ");
  return { rows: Number(position.slice(0, end)), identity: position.slice(end + 1) };
}
