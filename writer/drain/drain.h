/*
 * The drain process as a whole.
 */
#ifndef XS_DRAIN_H
#define XS_DRAIN_H

/*
 * The drain process: reads until the application and its descendants have ended, then removes the
 * run directory. channel: to the launcher; -1: that of another drain process, which died, is
 * completed (--recover).
 */
int xs_drain(const char *dir, int channel);

#endif
