import { saveBlob } from "../../base/save-file.ts";

/** Has the browser save a text of JSON as a file. */
export function saveFile(name: string, text: string): void {
  saveBlob(name, new Blob([text], { type: "application/json" }));
}

/** A name that every file system takes. */
export function fileNameOf(name: string): string {
  const plain = name
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[-.]+/, "")
    .slice(0, 80);
  return `${plain === "" ? "dashboard" : plain}.json`;
}
