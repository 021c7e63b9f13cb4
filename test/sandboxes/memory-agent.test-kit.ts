import { ndJsonStream } from "@agentclientprotocol/sdk";
import type { Exec, ExecOutput, ExecRequest } from "../../src/sandbox/runtime/runtime.ts";
import { scriptedAgent, type AgentBehaviour } from "./acp-agent.ts";

/** The scripted agent as a command of a fake machine: it lives in this process, and needs no time of its own. */
export class MemoryAgent implements Exec {
  readonly id: string;
  isKilled = false;
  readonly #outputs: ExecOutput[] = [];
  #changed = Promise.withResolvers<void>();
  readonly #input = new TransformStream<Uint8Array, Uint8Array>({}, { highWaterMark: 1_000 }, { highWaterMark: 1_000 });
  readonly #writer = this.#input.writable.getWriter();

  constructor({ id }: ExecRequest, behaviour: AgentBehaviour) {
    this.id = id;
    const output = new WritableStream<Uint8Array>({ write: (bytes) => this.#add({ type: "stdout", bytes }) });
    scriptedAgent({
      ...behaviour,
      exit: (code) => this.#add({ type: "exit", exitCode: code, signal: undefined, timedOut: false }),
    }).connect(ndJsonStream(output, this.#input.readable));
  }

  async *output(_from?: { stdout: number; stderr: number }, signal?: AbortSignal): AsyncGenerator<ExecOutput> {
    signal?.addEventListener("abort", () => this.#tell());
    for (let at = 0; ; at++) {
      const changed = this.#changed.promise;
      const output = this.#outputs[at];
      if (signal?.aborted === true) throw new Error("given up");
      if (output === undefined) {
        await changed;
        at--;
        continue;
      }
      yield output;
      if (output.type === "exit") return;
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#writer.write(bytes);
  }

  async endInput(): Promise<void> {}

  async resize(): Promise<void> {}

  async kill(): Promise<void> {
    this.isKilled = true;
    this.#add({ type: "exit", exitCode: undefined, signal: "SIGKILL", timedOut: false });
  }

  #add(output: ExecOutput): void {
    if (this.#outputs.at(-1)?.type === "exit") return;
    this.#outputs.push(output);
    this.#tell();
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
