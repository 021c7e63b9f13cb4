/** Puts the text into the clipboard. Resolves to whether the browser allowed it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP of another host there is no clipboard: the older way, which needs a selection.
    return copySelection(text);
  }
}

function copySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  const { activeElement } = document;
  // Beside what has the focus, as nothing outside of an open dialog can be selected.
  (activeElement?.closest("dialog") ?? document.body).append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- there is no other way without a secure context
  const isCopied = document.execCommand("copy");
  area.remove();
  if (activeElement instanceof HTMLElement) activeElement.focus();
  return isCopied;
}
