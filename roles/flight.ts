import type { Authenticator } from "../src/auth/authenticator.ts";
import type { Caller } from "../src/auth/caller.ts";
import { NO_OWNER } from "../src/auth/owner.ts";
import { formatAddress, type Address } from "../src/config/kinds.ts";
import { valuesOf } from "../src/config/option.ts";
import { StartupError } from "../src/core/errors.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import { FLIGHT_OPTIONS } from "../src/query/flight/options.ts";
import { flightOperations, MAX_TICKET_BYTES } from "../src/query/flight/flight.ts";
import { guardedService, tokenCaller, type CallerOf } from "../src/server/grpc/guarded-service.ts";
import { announce, isReachable } from "./exposure.ts";
import { grpcService } from "./grpc.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";

/** Where `engine serve` listens unless it is told to listen elsewhere. */
const LOCAL_ADDRESS: Address = { host: "127.0.0.1", port: 9090 };

/** Each may be sent a ticket before anybody looks at it, and waits for a client to take a message of its answer. */
const CALLS_PER_CONNECTION = 32;

/** Who calls where nobody is asked who they are. */
const ANYBODY: Caller = {
  subject: "anonymous",
  kind: "anonymous",
  role: "read",
  databases: undefined,
  owner: NO_OWNER,
};

type FlightPorts = {
  query: Pick<QueryService, "run">;
  authenticator: Authenticator;
  isDraining: () => boolean;
};

/** Arrow Flight on its own port: of servers with the role `query`, unless it is off. */
export function flightService(plan: Plan, parts: Parts, ports: FlightPorts): Service | undefined {
  const { grpcAddr, grpcAuth } = valuesOf(FLIGHT_OPTIONS, parts.config);
  const isServed = plan.roles.some((role) => role === "all_in_one" || role === "query");
  if (!isServed || grpcAddr === "off") return undefined;
  const { authenticator, isDraining, query } = ports;
  if (grpcAuth && !authenticator.isOn) {
    throw new StartupError(
      "ENGINE_GRPC_AUTH asks for tokens, and authentication is off: nobody has one; set ENGINE_AUTH_BACKEND or " +
        "ENGINE_AUTH_TOKENS, or unset it",
      2,
    );
  }
  const callerOf: CallerOf = grpcAuth ? tokenCaller(authenticator, "read") : () => Promise.resolve(ANYBODY);
  const isDefault = Reflect.get(parts.origins, "grpcAddr") === "default";
  return grpcService({
    parts,
    title: "Arrow Flight",
    services: [guardedService(flightOperations({ query, tablesOnly: !grpcAuth }), { ...parts, callerOf, isDraining })],
    listen: parts.isLocal && isDefault ? LOCAL_ADDRESS : grpcAddr,
    variable: "ENGINE_GRPC_ADDR",
    mayBeTaken: parts.isLocal && isDefault,
    maxReceiveBytes: MAX_TICKET_BYTES,
    maxCallsPerConnection: CALLS_PER_CONNECTION,
    onListening: (address) => {
      if (!grpcAuth && isReachable(address)) warnOfOpenFlight(parts, address, authenticator.isOn);
    },
  });
}

/** Whoever asks for tokens over HTTP may not expect that this port does not. */
function warnOfOpenFlight({ log }: Parts, address: Address, tokensAreAsked: boolean): void {
  const lines = [
    `WARNING: Arrow Flight asks for no token, and other machines can reach ${formatAddress(address)}.`,
    "Whoever reaches it may read every table.",
    tokensAreAsked
      ? "Set ENGINE_GRPC_AUTH=true, or ENGINE_GRPC_ADDR to off or an address of 127.0.0.1."
      : "Set ENGINE_GRPC_ADDR to off or an address of 127.0.0.1.",
  ];
  announce(lines, address, { log, write: (text) => process.stderr.write(text) }, tokensAreAsked);
}
