/** Has the browser save a text as a file. */
export function saveFile(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  try {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A name that every file system takes. */
export function fileNameOf(name: string): string {
  const plain = name
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[-.]+/, "")
    .slice(0, 80);
  return `${plain === "" ? "dashboard" : plain}.json`;
}
