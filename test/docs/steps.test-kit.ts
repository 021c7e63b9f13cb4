import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { cleanEnv } from "../support/engine.ts";

/** The shell commands of a section of a document, a string for each block. */
export function stepsOf(document: string, heading: string): string[] {
  const text = readFileSync(fileURLToPath(new URL(`../../docs/${document}`, import.meta.url)), "utf8");
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${document} has no section ${heading}`);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
}

/** Runs them as written, in a shell with these variables; throws with what they printed when one fails. */
export function runSteps(steps: string, env: Readonly<Record<string, string>>): void {
  execFileSync("sh", ["-euc", steps], { env: { ...cleanEnv(), ...env }, stdio: ["ignore", "ignore", "inherit"] });
}
