/** Has the browser save something as a file. */
export function saveBlob(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  try {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  } finally {
    URL.revokeObjectURL(address);
  }
}
