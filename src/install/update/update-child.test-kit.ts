/** The process that a test kills: an update in the world that its arguments describe. */
import { describeError, exitCodeOf } from "../../client/failure.ts";
import { CliContext } from "../../client/context.ts";
import { systemClock } from "../../core/clock.ts";
import type { Distribution } from "../../core/distribution.ts";
import { systemRandom } from "../../core/random.ts";
import { UPDATE_OPTIONS } from "./options.ts";
import { runUpdate } from "./update-command.ts";

const [description = "", version = ""] = process.argv.slice(2);
const { distribution, publicKey } = JSON.parse(description) as { distribution: Distribution; publicKey: string };
const { stdin, stdout, stderr, env } = process;
const context = new CliContext({
  serve: () => Promise.resolve(0),
  rows: () => Promise.resolve(UPDATE_OPTIONS),
  migrations: () => Promise.resolve([]),
  version: "0.1.0",
  env,
  stdin,
  stdout,
  stderr,
  clock: systemClock,
  random: systemRandom,
});
const setting = { distribution, execPath: process.execPath, publicKeys: [publicKey], manager: undefined };
// What is loaded on the way is loaded already: kills then fall on the work itself.
await import("undici");
stdout.write("ready\n");
try {
  process.exitCode = await runUpdate(context, { restart: true, force: true, version }, setting);
} catch (error) {
  stderr.write(`${describeError(error).message}\n`);
  process.exitCode = exitCodeOf(error);
}
