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

/** Whether a program is found; where it has to be, in CI, it is an error that it is not. */
export function isInstalled(program: string, remedy: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    if (process.env["CI"] === "true") throw new Error(`there is no ${program}: ${remedy}`);
    process.stderr.write(`skipped for lack of ${program}: ${remedy}\n`);
    return false;
  }
}
