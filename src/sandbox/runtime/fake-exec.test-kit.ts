import type { Clock } from "../../core/clock.ts";
import type { Exec, ExecOutput, ExecRequest } from "./runtime.ts";

/**
 * A command of a fake machine: a shell script of `echo WORDS`, `sleep MS` and `exit CODE`, parted by `;`. Its output and
 * end stay for whoever asks, from the beginning.
 */
export class FakeExec implements Exec {
  readonly id: string;
  readonly #outputs: ExecOutput[] = [];
  #changed = Promise.withResolvers<void>();

  constructor(clock: Clock, { id, argv }: ExecRequest) {
    this.id = id;
    void this.#run(clock, (argv.at(-1) ?? "").split(";"));
  }

  async *output(): AsyncGenerator<ExecOutput> {
    for (let at = 0; ; at++) {
      const changed = this.#changed.promise;
      const output = this.#outputs[at];
      if (output === undefined) {
        await changed;
        at--;
        continue;
      }
      yield output;
      if (output.type === "exit") return;
    }
  }

  async write(): Promise<void> {}

  async endInput(): Promise<void> {}

  async resize(): Promise<void> {}

  async kill(): Promise<void> {
    this.#add({ type: "exit", exitCode: undefined, signal: "SIGKILL", timedOut: false });
  }

  async #run(clock: Clock, commands: string[]): Promise<void> {
    for (const command of commands) {
      const [verb = "", ...words] = command.trim().split(" ");
      if (verb === "echo") this.#add({ type: "stdout", bytes: Buffer.from(`${words.join(" ")}\n`) });
      if (verb === "sleep") await new Promise<void>((resolve) => clock.after(Number(words[0]), resolve));
      if (verb === "exit") {
        this.#add({ type: "exit", exitCode: Number(words[0]), signal: undefined, timedOut: false });
        return;
      }
    }
    this.#add({ type: "exit", exitCode: 0, signal: undefined, timedOut: false });
  }

  #add(output: ExecOutput): void {
    if (this.#outputs.at(-1)?.type === "exit") return;
    this.#outputs.push(output);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
