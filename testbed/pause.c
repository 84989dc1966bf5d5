/* The first process of a pod sandbox and of a cluster's own process namespace: it waits for the
 * end and reaps whatever is orphaned to it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void finish(int signal) {
  (void)signal;
  _exit(0);
}

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction end = {.sa_handler = finish};
  struct sigaction orphan = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGINT, &end, 0);
  sigaction(SIGTERM, &end, 0);
  sigaction(SIGCHLD, &orphan, 0);
  for (;;) pause();
}
