/** The program's own icon, as a file of the pages. */
export const ICON = new URL("../styles/icon.svg", import.meta.url).href;
