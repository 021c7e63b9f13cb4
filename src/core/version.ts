import { readFileSync } from "node:fs";

declare const ENGINE_VERSION: string | undefined;

/** The version of this program: written into the bundled release when it is built, read from the package otherwise. */
export const VERSION: string = typeof ENGINE_VERSION === "string" ? ENGINE_VERSION : packageVersion();

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  return version;
}
