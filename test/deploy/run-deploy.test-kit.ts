import { PassThrough, Writable } from "node:stream";
import { FEATURES } from "../../roles/features.ts";
import { runCli } from "../../src/cli/main.ts";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";

/** Runs `engine deploy` in this process, without a terminal, for an `ENGINE_HOME`. */
export async function runDeploy(home: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const said = { stdout: "", stderr: "" };
  const into = (name: keyof typeof said) =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        said[name] += chunk.toString("utf8");
        done();
      },
    });
  const code = await runCli(["deploy", ...words], {
    serve: () => Promise.reject(new Error("nothing serves here")),
    migrations: () => Promise.resolve([]),
    features: () => Promise.resolve(FEATURES),
    version: "1.2.3",
    env: { PATH: process.env["PATH"], ENGINE_HOME: home, ...env },
    stdin: new PassThrough(),
    stdout: into("stdout"),
    stderr: into("stderr"),
    clock: systemClock,
    random: systemRandom,
  });
  return { code, ...said };
}
