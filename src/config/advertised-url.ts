import { hostname } from "node:os";
import { formatAddress, type Address } from "./kinds.ts";

/**
 * Where others reach a process that listens there: by the host's name where it listens to all addresses. An address of
 * this machine alone is good for nodes on it. Undefined for a port that is not known before the server listens.
 */
export function advertisedUrl({ host, port }: Address, isTls: boolean): string | undefined {
  if (port === 0) return undefined;
  const isAny = host === "0.0.0.0" || host === "::";
  return `${isTls ? "https" : "http"}://${formatAddress({ host: isAny ? hostname() : host, port })}`;
}
