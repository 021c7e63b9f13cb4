/**
 * Imported by whatever Node starts of the program, threads included: a report on a crash, which is sent to others, does
 * not hold the environment, where the options are and with them secrets.
 */
process.report.excludeEnv = true;
