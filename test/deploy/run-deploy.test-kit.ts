import { PassThrough, Writable } from "node:stream";
import { FEATURES } from "../../roles/features.ts";
import { runCli } from "../../src/cli/main.ts";
import { systemClock, type Clock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";

/** Somebody at a terminal. */
export type Terminal = {
  /** Typed one after the other. */
  answers: readonly string[];
  /** Called with each piece of standard error. */
  onStderr?: (text: string) => void;
  clock?: Clock;
};

/** Runs `engine deploy` in this process for an `ENGINE_HOME`, without a terminal unless one is given. */
export async function runDeploy(
  home: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  terminal?: Terminal,
) {
  const said = { stdout: "", stderr: "" };
  const into = (name: keyof typeof said) =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        said[name] += chunk.toString("utf8");
        if (name === "stderr") terminal?.onStderr?.(chunk.toString("utf8"));
        done();
      },
    });
  const stdin = Object.assign(new PassThrough(), { isTTY: terminal !== undefined });
  for (const answer of terminal?.answers ?? []) stdin.write(`${answer}\n`);
  const code = await runCli(["deploy", ...words], {
    serve: () => Promise.reject(new Error("nothing serves here")),
    migrations: () => Promise.resolve([]),
    features: () => Promise.resolve(FEATURES),
    version: "1.2.3",
    env: { PATH: process.env["PATH"], ENGINE_HOME: home, ...env },
    stdin,
    stdout: into("stdout"),
    stderr: into("stderr"),
    clock: terminal?.clock ?? systemClock,
    random: systemRandom,
  });
  return { code, ...said };
}
