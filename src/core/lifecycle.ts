/**
 * What a role starts and stops. `run` resolves once the service accepts work; `drain` refuses new work and resolves
 * when all accepted work is finished; `stop` releases everything. A role runs its services in order and drains and
 * stops them in reverse.
 */
export interface Service {
  readonly name: string;
  run(): Promise<void>;
  drain(): Promise<void>;
  stop(): Promise<void>;
}
