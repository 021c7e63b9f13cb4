import type { TimerHandle } from "../src/core/clock.ts";
import { StartupError } from "../src/core/errors.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { tryLock, type ProcessLock } from "../src/db/sqlite/process-lock.ts";
import type { McpHttp } from "../src/knowledge/mcp/http.ts";
import { socketLockOf, socketPathOf, socketPathProblem } from "../src/knowledge/mcp/stdio/socket-path.ts";
import { SocketServer } from "../src/knowledge/mcp/stdio/socket-server.ts";
import type { Parts } from "./parts.ts";

/** Answers the agents of this machine's user over the socket of the home, whose lock the process holds. */
export function mcpSocket({ config, log, newId }: Parts, mcp: McpHttp): Service {
  const path = socketPathOf(config.home);
  const server = new SocketServer({ path, mcp, newId, log });
  return {
    name: "mcp-socket",
    run: async () => {
      const problem = socketPathProblem(path);
      if (problem !== undefined) throw new StartupError(problem, 2);
      await server.listen();
    },
    drain: async () => {
      mcp.endStreams();
      await server.drain();
    },
    stop: async () => server.close(),
  };
}

const LOCK_PAUSE_MS = 100;

/** The same beside a server, which does without it where it cannot have it. */
export function mcpSocketBeside(parts: Parts, mcp: McpHttp): Service {
  const { clock, config, log } = parts;
  const socket = mcpSocket(parts, mcp);
  let lock: ProcessLock | undefined;
  let next: TimerHandle | undefined;
  const listen = async (): Promise<void> => {
    // A command holds it for a moment, to see that the catalog is not free.
    lock = tryLock(socketLockOf(config.home));
    if (lock !== undefined) return await socket.run();
    next = clock.after(LOCK_PAUSE_MS, () => void attempt(), { background: true });
  };
  const attempt = () =>
    listen().catch((error: unknown) => log.warn({ err: error }, "`engine mcp` cannot be answered by this server"));
  return {
    name: socket.name,
    run: attempt,
    drain: async () => {
      next?.cancel();
      await socket.drain();
    },
    stop: async () => {
      await socket.stop();
      lock?.release();
    },
  };
}
