import { formatAddress, type Address } from "../src/config/kinds.ts";
import { StartupError, systemCodeOf } from "../src/core/errors.ts";

/**
 * Has a server listen. `otherwise` completes "stop it, or choose another …".
 * @throws StartupError that names the address where it is taken, forbidden or not this machine's.
 */
export async function bindServer(
  server: { listen(address: Address): Promise<Address> },
  address: Address,
  otherwise: string,
): Promise<Address> {
  const shown = formatAddress(address);
  try {
    return await server.listen(address);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "EADDRINUSE") {
      throw new StartupError(
        `${shown} is in use by another program; stop it, or choose another ${otherwise}`,
        1,
        error,
      );
    }
    if (code === "EACCES") throw new StartupError(`may not listen on ${shown}: permission denied`, 1, error);
    if (code === "EADDRNOTAVAIL") throw new StartupError(`${shown} is no address of this machine`, 2, error);
    throw error;
  }
}

/** Whether it failed because somebody else listens there. */
export function isTaken(error: unknown): boolean {
  return error instanceof StartupError && systemCodeOf(error.cause) === "EADDRINUSE";
}
