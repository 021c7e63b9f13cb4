import { keepFilesPrivate } from "../../core/isolate.ts";
import { tryFence } from "../../io/confinement/fence.ts";
import { inputFolder, outputFolder } from "./process-folders.ts";

/** What a process does that `confined-process.ts` starts, before it takes what strangers wrote. */

/** Files of this process are private, and it ends when the server does, and not before. */
export function liveWithServer(): void {
  keepFilesPrivate();
  // A terminal's Ctrl-C goes to the whole group; when this process ends is for the server to say.
  process.on("SIGINT", () => {});
  // The server is gone. An ordinary exit would wait for the thread that works, however long that takes.
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
}

/** The folder of this process. Throws where the process is said to be confined to it, and is not. */
export function enterFolder(): string {
  const folder = process.env["ENGINE_QUERY_CHILD_FOLDER"];
  if (folder === undefined) throw new Error("not started by the server");
  if (process.env["ENGINE_QUERY_CHILD_CONFINED"] === "true") {
    tryFence({ inside: inputFolder(folder), outside: outputFolder(folder) });
  }
  return folder;
}
