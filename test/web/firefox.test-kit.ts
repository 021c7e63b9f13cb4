import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { CONTROL, pressed, type DrivenBrowser } from "./smoke.test-kit.ts";

/** It would otherwise ask its maker's servers for settings. */
const PREFERENCES = `
user_pref("services.settings.server", "data:,#remote-settings-dummy/v1");
user_pref("app.normandy.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
`;

type Message = { id?: number; result?: unknown; error?: string; message?: string; method?: string; params?: unknown };

/** Debian's Firefox, driven by WebDriver BiDi: playwright drives only a Firefox of its own. */
export async function startFirefox(): Promise<DrivenBrowser> {
  const profile = await mkdtemp(join(tmpdir(), "engine-firefox-"));
  await writeFile(join(profile, "user.js"), PREFERENCES);
  const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"];
  const child = endsWithThisProcess(
    spawn("firefox-esr", [...args, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] }),
  );
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const socket = new WebSocket(`${await listening(child.stderr)}/session`);
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const problems: string[] = [];
  const send = commands(socket, ({ method, params }) => {
    const { level, text } = params as { level?: string; text?: string };
    if (method === "log.entryAdded" && level === "error") problems.push(text ?? "");
  });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  const { contexts } = (await send("browsingContext.getTree", {})) as { contexts: { context: string }[] };
  const context = contexts[0]?.context;
  const act = async (actions: object[]): Promise<void> => {
    await send("input.performActions", { context, actions: [{ type: "key", id: "keys", actions }] });
  };
  return {
    problems: () => Promise.resolve(problems),
    goto: async (url) => void (await send("browsingContext.navigate", { context, url, wait: "complete" })),
    evaluate: async (expression) => {
      const answer = await send("script.evaluate", { expression, target: { context }, awaitPromise: true });
      const { type, result, exceptionDetails } = answer as {
        type: string;
        result?: { value?: unknown };
        exceptionDetails?: { text: string };
      };
      if (type === "exception") throw new Error(exceptionDetails?.text);
      return result?.value;
    },
    type: async (text) => await act(Array.from(text).flatMap(pressed)),
    pressWithControl: async (key) =>
      await act([{ type: "keyDown", value: CONTROL }, ...pressed(key), { type: "keyUp", value: CONTROL }]),
    stop: async () => {
      socket.close();
      child.kill();
      await gone;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The address that it writes once it listens. */
async function listening(stderr: NodeJS.ReadableStream): Promise<string> {
  const seen: string[] = [];
  for await (const line of createInterface(stderr)) {
    seen.push(line);
    const [, url] = /^WebDriver BiDi listening on (ws:\S+)$/.exec(line) ?? [];
    if (url !== undefined) {
      // It goes on writing, and would wait for a reader.
      stderr.resume();
      return url;
    }
  }
  throw new Error(`Firefox ended before it listened: ${seen.join("\n")}`);
}

/** Sends commands, each of which is answered under its number; what has none is an event. */
function commands(socket: WebSocket, onEvent: (event: Message) => void) {
  let last = 0;
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") throw new Error("Firefox sent bytes instead of a text");
    const message = JSON.parse(data) as Message;
    if (message.id === undefined) return onEvent(message);
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error === undefined) resolve?.(message.result);
    else reject?.(new Error(`${message.error}: ${message.message ?? ""}`));
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("Firefox closed the connection"));
  });
  return (method: string, params: object): Promise<unknown> => {
    const id = ++last;
    const answered = Promise.withResolvers<unknown>();
    waiting.set(id, answered);
    socket.send(JSON.stringify({ id, method, params }));
    return answered.promise;
  };
}
