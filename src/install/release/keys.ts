/**
 * Whose releases this program installs. There are two keys, so that one can be lost or replaced: a release signed by the
 * other one brings the new pair. They are values of a build: ENGINE_RELEASE_KEYS at `npm run build` replaces them,
 * and whoever publishes releases sets it to keys of their own (docs/releases.md).
 */
declare const ENGINE_RELEASE_KEYS: string | undefined;

/** As minisign prints them. */
const BUILT_IN: readonly string[] = [
  "RWQBcYN3wZWoZ+VTeYnDTpsw5cgx86OibgYyrvhF1M7F8qGpgGtUjJIE",
  "RWSx9bVWO5CWaYFDcyDLaZH7F3bQMxKwHTY/eKiFZ1DIUJjdGjZ9jJ8D",
];

export const RELEASE_KEYS: readonly string[] =
  typeof ENGINE_RELEASE_KEYS === "string" ? ENGINE_RELEASE_KEYS.split(" ") : BUILT_IN;
