import { FABRIC_OPTIONS } from "../fabric/options.ts";
import { valuesOf } from "../config/option.ts";
import type { Clock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import type { RemotePort } from "../fabric/remote-port.ts";
import { checkServerUrl } from "../fabric/remote-port-http.ts";
import type { SandboxConfig } from "../sandbox/contract/options.ts";
import { RemoteImagePort } from "../sandbox/node/images/remote-image-port.ts";
import { Dialler } from "../sandbox/node/link/dialler.ts";
import { NodeUnable, openSandboxNode } from "../sandbox/node/open-node.ts";
import { RemoteControlPort } from "../sandbox/node/link/remote-control-port.ts";
import { CliError, EXIT } from "../client/failure.ts";

export type DaemonSandboxesOptions = {
  config: SandboxConfig;
  server: { url: string; token: string; userAgent: string };
  port: RemotePort;
  clock: Clock;
  random: Random;
  log: Log;
};

/** The sandboxes of a node daemon. */
export type DaemonSandboxes = {
  /** Rejects with `NodeRefused` when the control plane does not take this node. Resolves after `drain`. */
  run(): Promise<void>;
  /** Takes no more; those that are here go on, also without this process. */
  drain(): Promise<void>;
  stop(): Promise<void>;
};

/** Has this computer run sandboxes for a control plane elsewhere. Throws `CliError` where it cannot. */
export async function daemonSandboxes(options: DaemonSandboxesOptions, workerId: string): Promise<DaemonSandboxes> {
  const { config, server, port, clock, random, log } = options;
  const control = new RemoteControlPort(workerId, server);
  const images = new RemoteImagePort(server);
  const urls: { dial?: (gateways: readonly string[]) => void } = {};
  const opened = await openSandboxNode({
    ...options,
    newId: uuidV7Source(clock, random),
    begins: "at once",
    identify: () => Promise.resolve(workerId),
    jobsOf: () => port,
    controlOf: () => control,
    images,
    onGateways: (gateways) => urls.dial?.(gateways),
  }).catch((error: unknown) => {
    throw error instanceof NodeUnable
      ? new CliError(`no sandboxes here: ${error.message}`, EXIT.failed, { cause: error })
      : error;
  });
  const dialler = new Dialler({
    ...server,
    fallbackUrl: server.url,
    handler: opened.calls,
    onDesiredState: (sandboxId) => control.told(sandboxId),
    checkUrl: (url) => checkServerUrl(url, valuesOf(FABRIC_OPTIONS, config).workerInsecure),
    clock,
    random,
    log,
  });
  urls.dial = (gateways) => dialler.dial(gateways);
  const { node } = opened;
  return {
    run: async () => {
      dialler.dial([]);
      await node.start();
      log.info({ home: config.sandboxHome }, "taking sandboxes");
      await node.run();
    },
    drain: () => node.drain(),
    stop: async () => {
      await node.stop();
      dialler.stop();
      await opened.close();
      await control.close();
      await images.close();
    },
  };
}
