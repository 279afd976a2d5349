/* glibc moved these functions into libc.so.6 (2.32, 2.34) and gave them new versions with the same behaviour. Bound to
 * their first versions, one libhectrace.so serves the older systems that containers have (2.27 is needed for
 * memfd_create). The libraries where they lived are named as needed by CMakeLists.txt. */
#pragma once

#if defined(HEC_TRACER_FLOOR) && defined(__GLIBC__) && defined(__x86_64__)
#define HEC_OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)
HEC_OLD(dladdr, "2.2.5");
HEC_OLD(dlclose, "2.2.5");
HEC_OLD(dlerror, "2.2.5");
HEC_OLD(dlinfo, "2.3.3");
HEC_OLD(dlopen, "2.2.5");
HEC_OLD(dlsym, "2.2.5");
HEC_OLD(pthread_attr_setguardsize, "2.2.5");
HEC_OLD(pthread_attr_setstacksize, "2.2.5");
HEC_OLD(pthread_condattr_setclock, "2.3.3");
HEC_OLD(pthread_create, "2.2.5");
HEC_OLD(pthread_mutex_timedlock, "2.2.5");
HEC_OLD(pthread_setname_np, "2.12");
HEC_OLD(pthread_sigmask, "2.2.5");
#elif defined(HEC_TRACER_FLOOR) && defined(__GLIBC__) && defined(__aarch64__)
#define HEC_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
HEC_OLD(dladdr);
HEC_OLD(dlclose);
HEC_OLD(dlerror);
HEC_OLD(dlinfo);
HEC_OLD(dlopen);
HEC_OLD(dlsym);
HEC_OLD(pthread_attr_setguardsize);
HEC_OLD(pthread_attr_setstacksize);
HEC_OLD(pthread_condattr_setclock);
HEC_OLD(pthread_create);
HEC_OLD(pthread_mutex_timedlock);
HEC_OLD(pthread_setname_np);
HEC_OLD(pthread_sigmask);
#endif
