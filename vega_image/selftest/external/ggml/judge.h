/* Runs one case on a back end and says what it is worth. */
#ifndef VEGA_JUDGE_H
#define VEGA_JUDGE_H

#include "trial.h"

enum Verdict { MATCH, DEGRADED, MISMATCH, NOT_FINITE, CRASHED, UNSUPPORTED, INVALID };

/* `plant`: NULL, or a fault to put into every result. `repeats`: runs compared bit by bit. */
typedef struct {
    Backend backend;
    const char *device, *plant;
    int repeats;
} Session;

/* `bound` belongs to the element with the largest error in units of its bound. */
typedef struct {
    enum Verdict verdict;
    double error, bound;
    char detail[240];
} Judgement;

bool fault_known(const char *name);
Judgement judge_case(const Session *session, const Case *row);
void print_judgement(const Session *session, const Case *row, const Judgement *judgement,
                     double seconds);
/* A JSON string of what may be any bytes; what is not printable is left out. */
void print_text(const char *text);

#endif
